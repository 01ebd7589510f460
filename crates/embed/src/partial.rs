//! Functions with some arguments fixed, and the code that is made of them while the program runs. Separate from handles, which only
//! call.

use crate::arguments::{Args, Return};
use crate::confined;
use crate::error::Error;
use crate::fixed::{self, Fix};
use crate::program::{Function, Program, check_types};
use crate::shape::Bytes;
use crate::untyped::Untyped;
use crate::variants::Variant;
use nyala_sema::{ExportedType, Signature};
use std::fmt;

/// An exported function, some of whose parameters are fixed to values. [`Partial::build`] makes a variant of it: code in which they are
/// constants, specialized as if the source had them, filters and all.
///
/// ```
/// use nyala_embed::{Function, Program};
///
/// let program = Program::from_source("power.impala", "
///     extern fn @(?n) power(x: f64, n: i32) -> f64 { if n == 0 { 1.0 } else { x * power(x, n - 1) } }
/// ")?;
/// // SAFETY: `power` accesses no memory.
/// let power = unsafe { program.partial("power") }?;
/// let cube: Function<(f64,), f64> = power.fix("n", 3)?.build()?;
/// assert_eq!(cube.call((2.0,)), 8.0);
/// # Ok::<(), nyala_embed::Error>(())
/// ```
///
/// A variant is built once for equal values, and [kept](Program::variants); floats are equal if their bits are.
pub struct Partial {
    program: Program,
    /// The function's number, and what is fixed.
    key: Bytes,
    depth: usize,
}

impl Program {
    /// A function with what is fixed, by its [key](Partial::key).
    ///
    /// # Safety
    /// As for [`Program::partial`].
    ///
    /// # Errors
    /// It is no key of this program.
    pub unsafe fn partial_by_key(&self, key: &[u8]) -> Result<Partial, Error> {
        match fixed::depth(key, self.signatures()) {
            Ok(depth) => Ok(Partial::of(self.clone(), key, depth)),
            Err(why) => Err(Error::System(why.into())),
        }
    }
}

/// Bytes of a key that most values of parameters need.
const ROOM: usize = 300;

impl Partial {
    /// A function of which nothing is fixed.
    pub(crate) fn new(program: Program, function: usize) -> Partial {
        Partial { program, key: fixed::key_of(function, false), depth: 1 }
    }

    /// A function of which nothing is fixed, and whose code is confined.
    pub(crate) fn confined(program: Program, function: usize) -> Partial {
        Partial { program, key: fixed::key_of(function, true), depth: 1 }
    }

    /// A function by the key of a variant.
    pub(crate) fn of(program: Program, key: &[u8], depth: usize) -> Partial {
        Partial { program, key: key.to_vec(), depth }
    }

    pub(crate) fn key_mut(&mut self) -> &mut Bytes {
        &mut self.key
    }

    /// The function with what is fixed, as bytes: [`Program::partial_by_key`] of the same program, compiled anew, makes the same of them.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The function's position in its program.
    pub(crate) fn number(&self) -> usize {
        fixed::number_of(&self.key)
    }

    /// How many functions there are within each other.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn signature(&self) -> &Signature {
        let all = self.program.signatures();
        // Keys begin with the number of a function of their program.
        fixed::function_of(&self.key, all).unwrap_or(&all.functions[0])
    }

    /// The names and types of the parameters that are not fixed.
    pub(crate) fn parameters_left(&self) -> impl Iterator<Item = (&str, &ExportedType)> {
        let is_left = |i: &usize| fixed::entries(&self.key).all(|(param, _)| param != *i);
        let params = &self.signature().params;
        (0..params.len()).filter(is_left).map(|i| (params[i].0.as_str(), &params[i].1))
    }

    /// The number of its parameters, with those that are fixed.
    pub(crate) fn n_parameters(&self) -> usize {
        self.signature().params.len()
    }

    /// The program that the function belongs to.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Fixes a parameter, by its name, to a value, which is copied with all that it refers to.
    ///
    /// # Errors
    /// There is no such parameter, it is fixed, or the value is of another type or has an address in it.
    ///
    /// ```
    /// use nyala_embed::{Function, Program, Slice};
    ///
    /// let program = Program::from_source("dot.impala", "
    ///     use std::slice::*;
    ///     extern fn dot(a: Slice[f32], b: Slice[f32]) -> f32 {
    ///         let mut sum = 0f;
    ///         for i in unroll(0i64, a.length) { if a(i) != 0f { sum += a(i) * b(i); } }
    ///         sum
    ///     }
    /// ")?;
    /// // SAFETY: `dot` accesses the elements of its slices; they are as many in all calls.
    /// let dot = unsafe { program.partial("dot") }?.fix("a", &[1f32, 0.0, 3.0])?;
    /// let dot: Function<(Slice<f32>,), f32> = dot.build()?;
    /// assert_eq!(dot.call((&[1.0, 10.0, 100.0],)), 301.0);
    ///
    /// let Err(wrong) = dot.fix("b", 1i32) else { panic!() };
    /// assert_eq!(wrong.to_string(), "cannot fix `b` of `dot`: it is `i32` here, `Slice[f32]` in the program");
    /// # Ok::<(), nyala_embed::Error>(())
    /// ```
    pub fn fix(&self, parameter: &str, value: impl Fix) -> Result<Partial, Error> {
        let param = self.find(parameter)?;
        let fail = |why| Err(self.refused(parameter, why));
        let kind = value.kind();
        let known = self.program.kept().known(self.number(), param);
        if kind.id().is_none() || known.and_then(|known| known.get()) != kind.id().as_ref() {
            if let Some(why) = kind.refusal(&self.program, &self.signature().params[param].1) {
                return fail(why);
            }
            if let (Some(known), Some(id)) = (known, kind.id()) {
                let _ = known.set(id);
            }
        }
        let mut made = self.clone();
        if let Err(why) = fixed::add(&mut made.key, param, |key| value.append(key)) {
            return fail(why);
        }
        made.depth = made.depth.max(kind.depth() + 1);
        Ok(made)
    }

    pub(crate) fn refused(&self, parameter: &str, why: String) -> Error {
        Error::CannotFix { name: self.signature().symbol.clone(), parameter: parameter.into(), why }
    }

    /// The position of a parameter that is not fixed.
    pub(crate) fn find(&self, parameter: &str) -> Result<usize, Error> {
        let signature = self.signature();
        let Some(param) = signature.params.iter().position(|(name, _)| name == parameter && !name.is_empty()) else {
            return Err(self.refused(parameter, format!("it has no such parameter: {}", signature.text)));
        };
        match fixed::entries(&self.key).any(|(other, _)| other == param) {
            true => Err(self.refused(parameter, "it is fixed".into())),
            false => Ok(param),
        }
    }

    /// The positions of the parameters that are fixed.
    pub fn fixed_parameters(&self) -> Vec<usize> {
        fixed::entries(&self.key).map(|(param, _)| param).collect()
    }

    /// The code with these values as constants, and a handle of it: code that was kept, or made now on this thread. Threads that want
    /// the same variant at once wait for one of them. The types of the parameters that are left are compared with the program's.
    ///
    /// # Errors
    /// They differ, or the variant does not compile: a static assertion does not hold, or partial evaluation does not end.
    pub fn build<A: Args, R: Return>(&self) -> Result<Function<A, R>, Error> {
        let variants = self.program.kept();
        if let Some(variant) = variants.find(&self.key) {
            if !variant.has_types::<A, R>() {
                self.check_types::<A, R>()?;
            }
            return Function::of_variant(&self.program, variant);
        }
        self.check_types::<A, R>()?;
        let variant = variants.make(&self.key, self.depth);
        variant.note_types::<A, R>();
        Function::of_variant(&self.program, variant)
    }

    /// Like [`Partial::build`], but returns as soon as the handle can be called: the function itself stands in, called with the values,
    /// until a thread of the program has built the variant. Calls that begin after that run the variant's code.
    /// [`Function::wait`] waits for it. If a value is a function, specialized code that is not optimized stands in.
    ///
    /// # Errors
    /// The types differ, there is no thread, or what stands in does not compile. [`Function::wait`] has an error of the variant.
    ///
    /// ```
    /// use nyala_embed::{Function, Program};
    ///
    /// let program = Program::from_source("power.impala", "
    ///     extern fn @(?n) power(x: f64, n: i32) -> f64 { if n == 0 { 1.0 } else { x * power(x, n - 1) } }
    /// ")?;
    /// // SAFETY: `power` accesses no memory.
    /// let cube: Function<(f64,), f64> = unsafe { program.partial("power") }?.fix("n", 3)?.build_async()?;
    /// assert_eq!(cube.call((2.0,)), 8.0);
    /// cube.wait()?;
    /// assert_eq!(cube.call((2.0,)), 8.0);
    /// # Ok::<(), nyala_embed::Error>(())
    /// ```
    pub fn build_async<A: Args, R: Return>(&self) -> Result<Function<A, R>, Error> {
        self.check_types::<A, R>()?;
        let variants = self.program.kept();
        let variant = variants.make(&self.key, self.depth);
        variant.note_types::<A, R>();
        if variant.is_built() {
            return Function::of_variant(&self.program, variant);
        }
        variant.stand_in(&self.program)?;
        variants.build_later(&self.program, variant.clone())?;
        Ok(Function::of_waiting(&self.program, variant))
    }

    /// The function without Rust types, not built.
    pub fn untyped(&self) -> Untyped {
        Untyped::of(self.clone())
    }

    /// The variant's code, without a comparison of types.
    ///
    /// # Errors
    /// The variant does not compile.
    pub fn build_untyped(&self) -> Result<Untyped, Error> {
        let variant = self.program.kept().make(&self.key, self.depth);
        variant.code(&self.program)?;
        Ok(Untyped::of_variant(self.clone(), variant))
    }

    fn check_types<A: Args, R: Return>(&self) -> Result<(), Error> {
        let left: Vec<(&str, &ExportedType)> = self.parameters_left().collect();
        check_types::<A, R>(self.signature(), &left, self.program.signatures())?;
        if fixed::is_confined(&self.key) { confined::check::<A>(self) } else { Ok(()) }
    }

    /// What partial evaluation does in the variant, and why: the text of `nyala explain`.
    ///
    /// # Errors
    /// The variant does not compile.
    pub fn explain(&self) -> Result<String, Error> {
        Variant::explain(&self.program, &self.key)
    }
}

impl Clone for Partial {
    fn clone(&self) -> Partial {
        // Most copies are made to fix a parameter: with room for one. Keys within a partial would be slower to move than to allocate.
        let mut key = Bytes::with_capacity(self.key.len() + ROOM);
        key.extend_from_slice(&self.key);
        Partial { program: self.program.clone(), key, depth: self.depth }
    }
}

impl fmt::Debug for Partial {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let left: Vec<&str> = self.parameters_left().map(|(name, _)| name).collect();
        f.debug_struct("Partial").field("function", &self.signature().text).field("left", &left).finish()
    }
}
