//! Functions of one name: which of them a call means, by the types of its arguments; and operators that a program defines for structs.

use super::*;

/// A function, or a template of functions.
#[derive(Clone, Copy)]
pub(super) enum Candidate {
    /// A place in [`Lowerer::functions`].
    Function(usize),
    /// A place among the templates.
    Template(usize),
}

/// A function that takes the arguments: how far each is from its parameter, and whether it comes of a template.
struct Fitting {
    id: usize,
    ranks: Vec<u32>,
    is_instance: bool,
}

/// Conversions cost more than promotions. In SIMD mode, a call for each lane costs most.
const PROMOTED: u32 = 1;
const CONVERTED: u32 = 2;
const BROADCAST: u32 = 10;
const EACH_LANE: u32 = 20;
/// In ISPC's dialect a number that becomes one of a wider type costs less than a value for all lanes, that less than another conversion, and both together
/// cost most.
const PROMOTED_OF_ISPC: u32 = 4;
const WIDENED_OF_ISPC: u32 = 5;
const BROADCAST_OF_ISPC: u32 = 8;
const CONVERTED_OF_ISPC: u32 = 10;

/// Whether all numbers of a type are numbers of another one.
fn is_widened(from: Prim, to: Prim) -> bool {
    // The digits of an integer type, and of the integers that a float type represents exactly.
    let digits = |prim: Prim| match prim {
        Prim::Bool => 1,
        Prim::F16 => 11,
        Prim::F32 => 24,
        Prim::F64 => 53,
        _ => prim.bits() - u32::from(prim.is_signed()),
    };
    match (from.is_float(), to.is_float()) {
        (true, false) => false,
        (false, false) if from != Prim::Bool && from.is_signed() && !to.is_signed() => false,
        _ => to != Prim::Bool && digits(from) <= digits(to),
    }
}

pub(super) fn functions(set: &[Candidate]) -> impl Iterator<Item = usize> {
    set.iter().filter_map(|c| if let Candidate::Function(id) = *c { Some(id) } else { None })
}

impl<'s> Lowerer<'s, '_> {
    /// The functions of this name in the file.
    pub(super) fn set_of(&mut self, name: Name<'s>) -> Lowered<usize> {
        let Some(scope) = self.scopes.first_mut() else { return Ok(0) };
        match scope.get(name.text) {
            Some(&(Entity::Functions(set), _)) => Ok(set),
            Some(&(_, before)) => Err(Box::new(sierra_name::twice(name.span, name.text, before))),
            None => {
                scope.insert(name.text, (Entity::Functions(self.sets.len()), name.span));
                self.sets.push(Vec::new());
                Ok(self.sets.len() - 1)
            }
        }
    }

    /// The one that takes the arguments best.
    pub(super) fn chosen(
        &mut self,
        set: usize,
        name: &str,
        of: &[TemplateArg<'s>],
        args: &[(Value, Span)],
        span: Span,
    ) -> Lowered<usize> {
        match self.fitting(set, of, args, span)?.as_slice() {
            [one] => Ok(one.id),
            several => {
                let places: Vec<Span> = several.iter().map(|f| self.functions[f.id].declared).collect();
                let mut found = Vec::new();
                for arg in args {
                    let ty = self.value_type(&arg.0);
                    found.push(self.types.show(ty));
                }
                Err(Box::new(sierra_type::overloads(span, name, &found, &places)))
            }
        }
    }

    /// None if nothing takes the arguments, several if they do so equally well.
    fn fitting(
        &mut self,
        set: usize,
        of: &[TemplateArg<'s>],
        args: &[(Value, Span)],
        span: Span,
    ) -> Lowered<Vec<Fitting>> {
        let mut all: Vec<Fitting> = Vec::new();
        for candidate in self.sets[set].clone() {
            let (id, is_instance) = match candidate {
                Candidate::Function(id) if of.is_empty() => (id, false),
                Candidate::Function(_) => continue,
                Candidate::Template(template) => match self.function_instance(template, of, args, span)? {
                    Some(id) => (id, true),
                    None => continue,
                },
            };
            let params = self.functions[id].params.clone();
            let needed = self.functions[id].defaults.iter().rposition(Option::is_none).map_or(0, |at| at + 1);
            let needed = if self.functions[id].defaults.is_empty() { params.len() } else { needed };
            if args.len() > params.len() || args.len() < needed {
                continue;
            }
            let ranks: Option<Vec<u32>> = args.iter().zip(&params).map(|(a, &ty)| self.rank(&a.0, ty)).collect();
            all.extend(ranks.map(|ranks| Fitting { id, ranks, is_instance }));
        }
        // One is better if no argument is farther, and one is nearer.
        let is_better = |a: &Fitting, b: &Fitting| {
            let pairs = || a.ranks.iter().zip(&b.ranks);
            let is_instance = !a.is_instance & b.is_instance;
            pairs().all(|(x, y)| x <= y) && (pairs().any(|(x, y)| x < y) || is_instance)
        };
        let best = (0..all.len()).find(|&i| (0..all.len()).all(|k| i == k || is_better(&all[i], &all[k])));
        Ok(match best {
            Some(i) => vec![all.swap_remove(i)],
            None => all,
        })
    }

    /// Whether a function takes the arguments.
    pub(super) fn takes(
        &mut self,
        set: usize,
        of: &[TemplateArg<'s>],
        args: &[(Value, Span)],
        span: Span,
    ) -> Lowered<bool> {
        Ok(!self.fitting(set, of, args, span)?.is_empty())
    }

    /// The type that a value has when it is read.
    pub(super) fn value_type(&mut self, value: &Value) -> Ty {
        match value {
            Value::Lanes(lanes) => self.types.varying(lanes.ty, lanes.n, self.w).unwrap_or(lanes.ty),
            value => value.ty(),
        }
    }

    /// How far an argument is from a parameter. `None`: it is none.
    fn rank(&mut self, arg: &Value, to: Ty) -> Option<u32> {
        let is_zero = |l: &Self| matches!(arg, Value::Plain(val, _) if l.w.as_lit(*val) == Some(0));
        let is_zero = is_zero(self);
        let from = self.value_type(arg);
        if let Kind::Reference { to, is_const } = *self.types.kind(to) {
            return match arg {
                Value::Place(place) if place.ty == to && (is_const || !place.is_const) => {
                    Some(u32::from(is_const != place.is_const))
                }
                _ if is_const => self.rank_of_types(from, to, is_zero).map(|rank| rank + 1),
                _ => None,
            };
        }
        let from = match (self.types.kind(from).clone(), arg) {
            (Kind::Array(of, _), Value::Place(place)) => self.types.pointer(of, place.is_const),
            _ => from,
        };
        self.rank_of_types(from, to, is_zero)
    }

    /// The same for pointers to elements of `soa<n>`, of lanes alike. `None`: it is another type.
    fn rank_of_slices(&self, from: Ty, to: Ty, is_zero: bool) -> Option<Option<u32>> {
        if self.types.lanes(from) != self.types.lanes(to)
            || [from, to].iter().all(|&ty| self.types.as_slice(ty).is_none())
        {
            return None;
        }
        let is_pointer = matches!(self.types.kind(from), Kind::Pointer { .. } | Kind::Prim(Prim::I32));
        Some(match (self.soa_behind(from), self.soa_behind(to)) {
            (Some((a, p)), Some((b, q))) if a == b && (q || !p) => Some(PROMOTED),
            (None, Some(_)) if is_zero && is_pointer => Some(CONVERTED),
            (Some(_), None) if self.types.as_prim(to) == Some(Prim::Bool) => Some(CONVERTED + 1),
            _ => None,
        })
    }

    fn rank_of_types(&mut self, from: Ty, to: Ty, is_zero: bool) -> Option<u32> {
        if from == to || from == Types::ERROR || to == Types::ERROR {
            return Some(0);
        }
        if let Some(rank) = self.rank_of_slices(from, to, is_zero) {
            return rank;
        }
        match (self.types.lanes(from), self.types.lanes(to)) {
            (None, Some(_)) => {
                let lane = self.types.lane(to);
                let cost = if self.is_ispc { BROADCAST_OF_ISPC } else { BROADCAST };
                return self.rank_of_types(from, lane, is_zero).map(|rank| rank + cost);
            }
            (Some(_), None) => {
                self.mode.filter(|m| m.is_real() && !self.is_ispc)?;
                let lane = self.types.lane(from);
                return self.rank_of_types(lane, to, false).map(|rank| rank + EACH_LANE);
            }
            (Some(a), Some(b)) if a != b => return None,
            (Some(_), Some(_)) => {
                let [from, to] = [from, to].map(|ty| self.types.lane(ty));
                return if self.types.as_struct(from).is_some() && from != to {
                    None
                } else {
                    self.rank_of_types(from, to, false)
                };
            }
            (None, None) => {}
        }
        match (self.types.kind(from).clone(), self.types.kind(to).clone()) {
            (Kind::Short(a, n), Kind::Short(b, m)) if n == m => self.rank_of_types(a, b, false),
            (Kind::Prim(_), Kind::Short(b, _)) => self.rank_of_types(from, b, false).map(|rank| rank + CONVERTED),
            (Kind::Prim(a), Kind::Prim(b)) => {
                let is_small = a == Prim::Bool || a.is_int() && a.bits() < 32;
                let is_promotion = is_small && b == Prim::I32 || a == Prim::F32 && b == Prim::F64;
                Some(match (self.is_ispc, is_promotion) {
                    (true, true) => PROMOTED_OF_ISPC,
                    (true, false) if is_widened(a, b) => WIDENED_OF_ISPC,
                    (true, false) => CONVERTED_OF_ISPC,
                    (false, true) => PROMOTED,
                    (false, false) => CONVERTED,
                })
            }
            (Kind::Pointer { .. } | Kind::Function(_), Kind::Prim(Prim::Bool)) => Some(CONVERTED + 1),
            (Kind::Prim(Prim::I32), Kind::Pointer { .. } | Kind::Function(_)) if is_zero => Some(CONVERTED),
            (Kind::Pointer { to: a, .. }, Kind::Function(_)) if a == Types::VOID && is_zero => Some(PROMOTED),
            (Kind::Pointer { to: a, is_const: p }, Kind::Pointer { to: b, is_const: q }) => {
                let is_null = is_zero && a == Types::VOID;
                match (q || !p, a == b, b == Types::VOID) {
                    (true, true, _) => Some(PROMOTED),
                    (true, _, true) => Some(CONVERTED),
                    _ if is_null => Some(PROMOTED),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    // Operators.

    /// What the program's own operator makes of values, one of which is a struct. `None`: there is none that takes them.
    pub(super) fn struct_operator(
        &mut self,
        name: &str,
        args: &[(Value, Span)],
        span: Span,
    ) -> Lowered<Option<(Val, Ty)>> {
        if !args.iter().any(|a| self.types.as_struct(a.0.ty()).is_some()) {
            return Ok(None);
        }
        let Some(Entity::Functions(set)) = self.find(name) else { return Ok(None) };
        if self.fitting(set, &[], args, span)?.is_empty() {
            return Ok(None);
        }
        let id = self.chosen(set, name, &[], args, span)?;
        let callee = self.callee(id);
        let found = self.call_values(&callee, args, span)?;
        self.behind_reference(found, span).map(Some)
    }

    /// An operator has a parameter that is a struct, and as many as the operator has operands.
    pub(super) fn check_operator(&mut self, name: Name<'s>, params: &[Ty]) -> Lowered<()> {
        let Some(sign) =
            name.text.strip_prefix("operator").filter(|s| !s.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        else {
            return Ok(());
        };
        if sign.is_empty() {
            return Ok(());
        }
        let is_struct = |ty: Ty| {
            let ty = if let Kind::Reference { to, .. } = *self.types.kind(ty) { to } else { ty };
            self.types.as_struct(ty).is_some()
        };
        let fits = match sign {
            "!" | "~" => params.len() == 1,
            // With a number behind it, it stands behind its operand.
            "+" | "-" | "++" | "--" => matches!(params.len(), 1 | 2),
            _ => params.len() == 2,
        };
        if !fits {
            return Err(Box::new(sierra_type::operator_arity(name.span, name.text, params.len())));
        }
        if !params.iter().any(|&ty| is_struct(ty)) {
            return Err(Box::new(sierra_type::no_operator(name.span, name.text)));
        }
        Ok(())
    }
}
