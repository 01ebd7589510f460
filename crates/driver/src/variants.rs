//! Variants of an exported function: some of its parameters are fixed to values that are known only when the program runs. A variant
//! is a program of its own, made of the graph, so that nothing is parsed or checked again. Separate from the graph, which knows no
//! values of its callers.
//!
//! The variant's graph has what the function reaches, and one export: a continuation with the parameters that are left, whose body
//! calls the function. Numbers are literals there, structs and arrays are put together of literals, and an address is that of an
//! immutable static with known contents. So partial evaluation decides as if the source had this call, and nothing in it knows of
//! variants.
//!
//! Variables of the program (`static mut`) exist once. A program that will have variants exports a function that tells their
//! addresses ([`Graph::export_statics`]), which are literals in its variants.

use crate::Graph;
use crate::report::Failed;
use nyala_base::diagnostics::bug;
use nyala_base::{Id, Span};
use nyala_ir::{Cont, Extractor, Global, Linkage, Op, Part, Ty, TyKind, Val, World};
use std::sync::Arc;

/// The symbol of the function that tells where a program's variables are: it takes the address of an array of `u64`, and writes the
/// address of each `static mut` to it, in the order of [`Graph::export_statics`].
pub const STATICS: &str = "nyala.statics";

/// The symbol by which a [stand-in](Graph::stand_in) calls its function.
pub const GENERIC: &str = "nyala.generic";

/// An exported function, with values for some of its parameters.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The function's symbol; the variant's, too.
    pub symbol: String,
    /// For each parameter the value that it is fixed to.
    pub fixed: Vec<Option<Fixed>>,
}

/// A value that is known when a variant is made.
#[derive(Clone, Debug)]
pub enum Fixed {
    /// A number or `bool`, by its bits.
    Bits(u64),
    /// The fields of a struct, or the elements of an array.
    Parts(Vec<Fixed>),
    /// The address of constants.
    Address(Vec<Fixed>),
    /// Another function of the program.
    Function(Box<Variant>),
}

impl Graph {
    /// Adds the function [`STATICS`], if the program has variables, and returns these.
    pub fn export_statics(&mut self) -> Vec<Global> {
        let is_variable = |g: &Global| self.world.global(*g).mutable;
        let all: Vec<Global> = (0..self.world.n_globals()).map(Global::from_idx).filter(is_variable).collect();
        // The graph of a front end is shared by nobody yet.
        let Some(w) = Arc::get_mut(&mut self.world).filter(|_| !all.is_empty()) else { return all };
        let (mem, word) = (w.types.mem(), w.types.prim(nyala_ir::Prim::U64));
        let words = w.types.indef_array(word);
        let words = w.types.ptr(words);
        let returns = w.types.cn(&[mem]);
        let ty = w.types.cn(&[mem, words, returns]);
        let k = w.declare("statics", ty, &["m", "addresses", "ret"]);
        w.cont_mut(k).linkage = Linkage::Exported(STATICS.into()).into();
        let (mut mem, to) = (w.param(k, 0), w.param(k, 1));
        for (i, &g) in all.iter().enumerate() {
            let (variable, index) = (w.global_val(g), w.lit_i64(i as i64));
            let address = w.op_ty(Op::Bitcast, word, &[variable]);
            let place = w.op(Op::Lea, &[to, index]);
            mem = w.op(Op::Store, &[mem, place, address]);
        }
        let ret = w.param(k, 2);
        w.define(k, ret, &[mem]);
        all
    }

    /// The graph of a variant. `statics` are the program's variables with their addresses.
    ///
    /// # Errors
    /// The values do not fit the function's parameters: an error of the caller, who knows the types.
    pub fn variant(&self, variant: &Variant, statics: &[(Global, u64)]) -> Result<Graph, Failed> {
        let addresses = self.addresses(statics);
        let made = self.roots_of(variant).and_then(|roots| {
            let part = Extractor::new(&self.world).with_addresses(&addresses).extract(&roots);
            Maker { whole: &self.world, part, generic: false }.make(variant)
        });
        let mut world = made.map_err(|why| self.report.clone().report(bug::error(Span::NONE, why)))?;
        world.ensures = self.world.ensures.clone();
        Ok(Graph { options: self.options.clone(), report: self.report.clone(), world: Arc::new(world) })
    }

    /// The graph of a function that stands for a variant until it is there: it calls the function itself, by the symbol [`GENERIC`],
    /// with the values. So it is small, whatever the function does. No value is a function.
    ///
    /// # Errors
    /// As for [`Graph::variant`].
    pub fn stand_in(&self, variant: &Variant) -> Result<Graph, Failed> {
        let made = self.roots_of(variant).and_then(|roots| {
            let part = Extractor::new(&self.world).extract(&roots);
            Maker { whole: &self.world, part, generic: true }.make(variant)
        });
        let world = made.map_err(|why| self.report.clone().report(bug::error(Span::NONE, why)))?;
        Ok(Graph { options: self.options.clone(), report: self.report.clone(), world: Arc::new(world) })
    }

    /// The part of the program that a variant is made of, and a function in it that takes what is left. `statics` are as for
    /// [`Graph::variant`].
    ///
    /// # Errors
    /// As for [`Graph::variant`].
    pub(crate) fn part_with(&self, variant: &Variant, statics: &[(Global, u64)]) -> Result<(World, Cont), String> {
        let addresses = self.addresses(statics);
        let part = Extractor::new(&self.world).with_addresses(&addresses).extract(&self.roots_of(variant)?);
        let mut maker = Maker { whole: &self.world, part, generic: false };
        maker.hide_roots();
        let k = maker.function(variant)?;
        Ok((maker.part.world, k))
    }

    /// The addresses of globals that lie elsewhere.
    fn addresses(&self, statics: &[(Global, u64)]) -> Vec<Option<u64>> {
        let mut addresses = vec![None; self.world.n_globals()];
        for &(g, address) in statics {
            if let Some(at) = addresses.get_mut(g.idx()) {
                *at = Some(address);
            }
        }
        addresses
    }

    /// The functions that a variant is made of.
    fn roots_of(&self, variant: &Variant) -> Result<Vec<Cont>, String> {
        let mut roots = Vec::new();
        let mut waiting = vec![variant];
        while let Some(variant) = waiting.pop() {
            let root = self.world.find_root(&variant.symbol);
            roots.push(root.ok_or_else(|| format!("there is no exported function `{}`", variant.symbol))?);
            let functions = variant.fixed.iter().flatten().filter_map(|value| match value {
                Fixed::Function(function) => Some(&**function),
                _ => None,
            });
            waiting.extend(functions);
        }
        Ok(roots)
    }
}

struct Maker<'w> {
    whole: &'w World,
    part: Part,
    /// Whether the function is called by its address.
    generic: bool,
}

impl Maker<'_> {
    /// Makes the functions that the program exports its own.
    fn hide_roots(&mut self) {
        for root in self.part.world.roots() {
            self.part.world.cont_mut(root).linkage = Linkage::Internal.into();
        }
    }

    fn make(mut self, variant: &Variant) -> Result<World, String> {
        self.hide_roots();
        let k = self.function(variant)?;
        self.part.world.cont_mut(k).linkage = Linkage::Exported(variant.symbol.clone()).into();
        Ok(self.part.world)
    }

    /// A continuation with the parameters that are left.
    fn function(&mut self, variant: &Variant) -> Result<Cont, String> {
        let symbol = &variant.symbol;
        let function = self.whole.find_root(symbol).and_then(|k| self.part.find(k));
        let function = function.ok_or_else(|| format!("there is no exported function `{symbol}`"))?;
        let w = &mut self.part.world;
        let data = w.cont(function);
        let (names, origin) = (data.names, data.origin);
        let tys = w.types.cn_params(data.ty).unwrap_or_default().to_vec();
        // Memory comes first, the return continuation last.
        let value = |i: usize| i.checked_sub(1).and_then(|i| variant.fixed.get(i)?.as_ref());
        if variant.fixed.len() + 1 > tys.len() {
            return Err(format!("`{symbol}` has fewer parameters"));
        }
        let left: Vec<usize> = (0..tys.len()).filter(|&i| value(i).is_none()).collect();
        let left_tys: Vec<Ty> = left.iter().map(|&i| tys[i]).collect();
        let ty = w.types.cn(&left_tys);
        w.set_origin(origin);
        let k = w.reserve(ty);
        w.set_params(k, names.keep(left.into_iter()));
        let mut next = 0;
        let mut args = Vec::with_capacity(tys.len());
        for (i, &ty) in tys.iter().enumerate() {
            args.push(match value(i) {
                Some(value) => self.value(value, ty)?,
                None => {
                    next += 1;
                    self.part.world.param(k, next - 1)
                }
            });
        }
        let w = &mut self.part.world;
        let callee = if self.generic { w.foreign(GENERIC, w.cont(function).ty) } else { function };
        let callee = w.cont_val(callee);
        w.define(k, callee, &args);
        Ok(k)
    }

    /// A value of a type. It is as deep as the type.
    fn value(&mut self, value: &Fixed, ty: Ty) -> Result<Val, String> {
        let w = &mut self.part.world;
        let kind = w.types.kind(ty).clone();
        match (value, kind) {
            (Fixed::Bits(bits), TyKind::Prim(_)) => Ok(w.lit(ty, *bits)),
            (Fixed::Parts(parts), TyKind::Struct(_)) => {
                let parts = self.parts(parts, ty)?;
                Ok(self.part.world.op_ty(Op::Struct, ty, &parts))
            }
            (Fixed::Parts(parts), TyKind::Array(..)) => {
                let parts = self.parts(parts, ty)?;
                Ok(self.part.world.op_ty(Op::Array, ty, &parts))
            }
            (Fixed::Address(elements), TyKind::Ptr { pointee, space: 0 }) => {
                let (elem, many) = match *w.types.kind(pointee) {
                    TyKind::IndefArray(elem) => (elem, true),
                    _ => (pointee, false),
                };
                match elements.len() {
                    // Nobody accesses it.
                    0 => return Ok(w.lit(ty, 0)),
                    n if n > 1 && !many => return Err(format!("{n} values for one")),
                    _ => {}
                }
                let array = w.types.array(elem, elements.len() as u64);
                let parts = elements.iter().map(|e| self.value(e, elem)).collect::<Result<Vec<_>, _>>()?;
                let w = &mut self.part.world;
                let (contents, init) = if many { (array, w.op_ty(Op::Array, array, &parts)) } else { (elem, parts[0]) };
                let g = w.declare_global("fixed", contents, false);
                w.set_init(g, init);
                let address = w.global_val(g);
                Ok(w.op_ty(Op::Bitcast, ty, &[address]))
            }
            (Fixed::Function(variant), TyKind::Cn(_)) => {
                let k = self.function(variant)?;
                let w = &mut self.part.world;
                let function = w.cont_val(k);
                if w.ty(function) == ty { Ok(function) } else { Err("a function of another type".into()) }
            }
            _ => Err(format!("a value does not fit `{}`", w.types.display(ty))),
        }
    }

    fn parts(&mut self, parts: &[Fixed], ty: Ty) -> Result<Vec<Val>, String> {
        if self.part.world.types.n_parts(ty) != Some(parts.len() as u64) {
            return Err(format!("{} parts for `{}`", parts.len(), self.part.world.types.display(ty)));
        }
        let part = |(i, part): (usize, &Fixed)| {
            let ty = self.part.world.types.part(ty, i as u64).ok_or("a part without a type")?;
            self.value(part, ty)
        };
        parts.iter().enumerate().map(part).collect()
    }
}
