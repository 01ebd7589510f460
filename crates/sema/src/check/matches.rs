//! Decides whether the arms of a `match` cover every value, and whether each arm is useful. The algorithm is Maranget's
//! ("Warnings for pattern matching", JFP 2007): rows of patterns are specialized column by column.

use super::*;
use nyala_syntax::ast::{ExprKind, Pattern, PatternKind};

/// Steps for one `match`.
const MAX_STEPS: u32 = 200_000;

/// A pattern without names.
#[derive(Clone, Debug)]
enum Pat {
    Any,
    Of(Ctor, Vec<Pat>),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Ctor {
    /// A tuple or struct.
    Whole,
    Option(u32),
    /// A bool, integer or char; floats by their bits.
    Literal(i128),
}

struct Budget(u32);

type Row<'p> = Vec<&'p Pat>;

static ANY: Pat = Pat::Any;

impl<'a> Checker<'a, '_> {
    pub(super) fn final_match(&mut self, module: usize, e: ExprId, ty: Ty) {
        let ExprKind::Match { arms, scrutinee } = &self.p.modules[module][e].kind else { return };
        if self.p.types.is_error(ty) {
            return;
        }
        let pats: Option<Vec<Pat>> = arms.iter().map(|arm| self.pat(module, &arm.pattern, ty)).collect();
        let Some(pats) = pats else { return };
        let mut budget = Budget(MAX_STEPS);
        let mut rows: Vec<Row> = Vec::new();
        for (arm, pat) in arms.iter().zip(&pats) {
            let useful = self.useful(&rows, &[pat], &[ty], &mut budget);
            if useful == Some(false) {
                self.report(useless_arm::warning(arm.pattern.span));
            }
            if arm.guard.is_none() {
                rows.push(vec![pat]);
            }
        }
        let span = self.p.modules[module][*scrutinee].span;
        let mut budget = Budget(MAX_STEPS);
        match self.missing(&rows, &[ty], &mut budget) {
            Some(None) => {
                if arms.last().is_some_and(|a| a.guard.is_none()) {
                    let g = self.p.global(module, e);
                    self.p.exhaustive.insert(g);
                }
            }
            Some(Some(witness)) => {
                let shown = witness.into_iter().next().unwrap_or_default();
                self.report(not_exhaustive::of_match(span, &shown));
            }
            None => self.limitation(span, "`match` expressions with so many combinations", "split it into several"),
        }
    }

    pub(super) fn final_irrefutable(&mut self, module: usize, pattern: &'a Pattern, ty: Ty) {
        if self.p.types.is_error(ty) {
            return;
        }
        let Some(pat) = self.pat(module, pattern, ty) else { return };
        let mut budget = Budget(MAX_STEPS);
        if let Some(Some(witness)) = self.missing(&[vec![&pat]], &[ty], &mut budget) {
            let shown = witness.into_iter().next().unwrap_or_default();
            self.report(not_exhaustive::of_pattern(pattern.span, &shown));
        }
    }

    /// `None` if something in it is an error.
    fn pat(&mut self, module: usize, pattern: &'a Pattern, ty: Ty) -> Option<Pat> {
        let key = (pattern.span.file, pattern.span.lo, pattern.span.hi);
        Some(match &pattern.kind {
            PatternKind::Unnamed => Pat::Any,
            PatternKind::Name { .. } => match self.p.patterns.get(&key) {
                Some(&i) => Pat::Of(Ctor::Option(i), Vec::new()),
                None => Pat::Any,
            },
            PatternKind::Literal(e) => {
                let (negative, kind) = self.literal_of(module, *e)?;
                let value = match kind {
                    ExprKind::Int { value, .. } => i128::try_from(*value).ok()?,
                    ExprKind::Char(c) => i128::from(*c),
                    ExprKind::Bool(b) => i128::from(*b),
                    ExprKind::Float { text, .. } => i128::from(text.parse::<f64>().ok()?.to_bits()),
                    _ => return None,
                };
                let is_float = matches!(kind, ExprKind::Float { .. });
                let value = match (negative, is_float) {
                    (true, true) => value | 1 << 63,
                    (true, false) => -value,
                    _ => value,
                };
                Pat::Of(Ctor::Literal(value), Vec::new())
            }
            PatternKind::Tuple(parts) => {
                let Kind::Tuple(tys) = self.p.types.kind(ty) else { return None };
                if tys.len() != parts.len() {
                    return None;
                }
                let parts: Option<Vec<Pat>> =
                    parts.iter().zip(tys.iter()).map(|(p, t)| self.pat(module, p, *t)).collect();
                Pat::Of(Ctor::Whole, parts?)
            }
            PatternKind::Option { parts, .. } => {
                let i = *self.p.patterns.get(&key)?;
                let Kind::Enum(id, args) = self.p.types.kind(ty) else { return None };
                let tys = self.option_parts(id, i, &args);
                let parts = parts.as_deref().unwrap_or(&[]);
                if tys.len() != parts.len() {
                    return None;
                }
                let parts: Option<Vec<Pat>> = parts.iter().zip(tys).map(|(p, t)| self.pat(module, p, t)).collect();
                Pat::Of(Ctor::Option(i), parts?)
            }
            PatternKind::Struct { fields, .. } => {
                let Kind::Struct(id, args) = self.p.types.kind(ty) else { return None };
                let tys = self.field_tys(id, &args);
                let mut parts = vec![Pat::Any; tys.len()];
                for (name, part) in fields {
                    let idx = *self.p.structs[id.0 as usize].index.get(&*name.text)? as usize;
                    parts[idx] = self.pat(module, part, tys[idx])?;
                }
                Pat::Of(Ctor::Whole, parts)
            }
        })
    }

    /// The types of the parts of a value of type `ty` made by `ctor`.
    fn ctor_parts(&mut self, ty: Ty, ctor: &Ctor) -> Vec<Ty> {
        match (self.p.types.kind(ty), ctor) {
            (Kind::Tuple(parts), Ctor::Whole) => parts.to_vec(),
            (Kind::Struct(id, args), Ctor::Whole) => self.field_tys(id, &args),
            (Kind::Enum(id, args), Ctor::Option(i)) => self.option_parts(id, *i, &args),
            _ => Vec::new(),
        }
    }

    /// All constructors of values of type `ty`, if they are few.
    fn ctors(&mut self, ty: Ty) -> Option<Vec<Ctor>> {
        match self.p.types.kind(ty) {
            Kind::Tuple(_) | Kind::Struct(..) => Some(vec![Ctor::Whole]),
            Kind::Enum(id, _) => {
                let n = self.p.enums[id.0 as usize].ast.options.len();
                Some((0..n).map(|i| Ctor::Option(i as u32)).collect())
            }
            Kind::Prim(Prim::Bool) => Some(vec![Ctor::Literal(0), Ctor::Literal(1)]),
            Kind::Prim(Prim::U8) => Some((0..256).map(Ctor::Literal).collect()),
            Kind::Prim(Prim::I8) => Some((-128..128).map(Ctor::Literal).collect()),
            _ => None,
        }
    }

    /// Whether some value is matched by `row` and none of `rows`; `None` if that takes too long.
    fn useful(&mut self, rows: &[Row], row: &[&Pat], tys: &[Ty], budget: &mut Budget) -> Option<bool> {
        budget.0 = budget.0.checked_sub(1 + rows.len() as u32)?;
        let (Some((first, rest)), Some((&ty, rest_tys))) = (row.split_first(), tys.split_first()) else {
            return Some(rows.is_empty());
        };
        if let Pat::Of(ctor, parts) = first {
            let inner_tys: Vec<Ty> = self.ctor_parts(ty, ctor).into_iter().chain(rest_tys.iter().copied()).collect();
            let inner: Row = parts.iter().chain(rest.iter().copied()).collect();
            return self.useful(&specialize(rows, ctor, parts.len()), &inner, &inner_tys, budget);
        }
        let used = head_ctors(rows);
        if let Some(all) = self.ctors(ty)
            && all.iter().all(|c| used.contains(c))
        {
            for ctor in all {
                let parts = self.ctor_parts(ty, &ctor);
                let n = parts.len();
                let inner_tys: Vec<Ty> = parts.into_iter().chain(rest_tys.iter().copied()).collect();
                let inner: Row = std::iter::repeat_n(&ANY, n).chain(rest.iter().copied()).collect();
                if self.useful(&specialize(rows, &ctor, n), &inner, &inner_tys, budget)? {
                    return Some(true);
                }
            }
            return Some(false);
        }
        self.useful(&defaults(rows), rest, rest_tys, budget)
    }

    /// A value, as patterns for each column, that no row matches.
    fn missing(&mut self, rows: &[Row], tys: &[Ty], budget: &mut Budget) -> Option<Option<Vec<String>>> {
        // Also ends the search for the many `match` expressions whose last arm is `_`.
        if !tys.is_empty() && rows.iter().any(|row| row.iter().all(|pat| matches!(pat, Pat::Any))) {
            return Some(None);
        }
        budget.0 = budget.0.checked_sub(1 + rows.len() as u32)?;
        let Some((&ty, rest_tys)) = tys.split_first() else {
            return Some(rows.is_empty().then(Vec::new));
        };
        let used = head_ctors(rows);
        let all = self.ctors(ty);
        if let Some(all) = &all
            && all.iter().all(|c| used.contains(c))
        {
            for ctor in all {
                let parts = self.ctor_parts(ty, ctor);
                let n = parts.len();
                let inner_tys: Vec<Ty> = parts.into_iter().chain(rest_tys.iter().copied()).collect();
                if let Some(mut witness) = self.missing(&specialize(rows, ctor, n), &inner_tys, budget)? {
                    let rest = witness.split_off(n);
                    let shown = self.show_ctor(ty, ctor, &witness);
                    return Some(Some(std::iter::once(shown).chain(rest).collect()));
                }
            }
            return Some(None);
        }
        let Some(witness) = self.missing(&defaults(rows), rest_tys, budget)? else { return Some(None) };
        let shown = match all {
            Some(all) if !used.is_empty() => match all.iter().find(|c| !used.contains(c)) {
                Some(ctor) => {
                    let n = self.ctor_parts(ty, ctor).len();
                    self.show_ctor(ty, ctor, &vec!["_".to_string(); n])
                }
                None => "_".into(),
            },
            _ if !used.is_empty() && self.p.types.as_prim(ty).is_some_and(Prim::is_int) => {
                let free = (0..).find(|n| !used.contains(&Ctor::Literal(*n)));
                free.map_or("_".into(), |n| n.to_string())
            }
            _ => "_".into(),
        };
        Some(Some(std::iter::once(shown).chain(witness).collect()))
    }

    fn show_ctor(&mut self, ty: Ty, ctor: &Ctor, parts: &[String]) -> String {
        match (self.p.types.kind(ty), ctor) {
            (Kind::Tuple(_), _) => format!("({})", parts.join(", ")),
            (Kind::Struct(id, _), _) => {
                let info = &self.p.structs[id.0 as usize];
                let fields: Vec<String> = info.fields.iter().zip(parts).map(|(f, p)| format!("{}: {p}", f.0)).collect();
                format!("{} {{ {} }}", short(&info.ast.name.text), fields.join(", "))
            }
            (Kind::Enum(id, _), Ctor::Option(i)) => {
                let ast = self.p.enums[id.0 as usize].ast;
                let name = format!("{}::{}", short(&ast.name.text), short(&ast.options[*i as usize].name.text));
                if parts.is_empty() { name } else { format!("{name}({})", parts.join(", ")) }
            }
            (Kind::Prim(Prim::Bool), Ctor::Literal(n)) => (*n != 0).to_string(),
            (_, Ctor::Literal(n)) => n.to_string(),
            _ => "_".into(),
        }
    }
}

fn head_ctors(rows: &[Row]) -> FxHashSet<Ctor> {
    let heads = rows.iter().filter_map(|row| row.first());
    heads.filter_map(|p| if let Pat::Of(ctor, _) = p { Some(ctor.clone()) } else { None }).collect()
}

/// The rows that may match a value made by `ctor`, with its parts in place of the value.
fn specialize<'p>(rows: &[Row<'p>], ctor: &Ctor, n: usize) -> Vec<Row<'p>> {
    let mut out = Vec::new();
    for row in rows {
        let Some((first, rest)) = row.split_first() else { continue };
        match first {
            Pat::Any => out.push(std::iter::repeat_n(&ANY, n).chain(rest.iter().copied()).collect()),
            Pat::Of(c, parts) if c == ctor => out.push(parts.iter().chain(rest.iter().copied()).collect()),
            Pat::Of(..) => {}
        }
    }
    out
}

/// The rows that match whatever is in the first column, without it.
fn defaults<'p>(rows: &[Row<'p>]) -> Vec<Row<'p>> {
    let any = |row: &&Row<'p>| matches!(row.first(), Some(Pat::Any));
    rows.iter().filter(any).map(|row| row[1..].to_vec()).collect()
}
