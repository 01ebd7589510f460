//! The arguments of a call in memory: which argument is which parameter's, and what the code gets. Separate from the call, which
//! happens without the interpreter's lock.

use crate::arrays::Buffer;
use crate::callbacks::{Called, received};
use crate::errors::raised;
use crate::function::Function;
use crate::memory::{Misfit, kind_of, number};
use crate::plan::{Form, Kind, Param, Plan, Returned};
use pyo3::exceptions::{PyNotImplementedError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;
use std::sync::Arc;

/// Arguments as parameters take them, in their order.
pub type Values<'py> = SmallVec<[Option<Bound<'py, PyAny>>; 8]>;

/// Words of 16 bytes' alignment, which no type of Impala's exceeds.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Block(#[expect(dead_code, reason = "read as words and bytes")] [u64; 2]);

/// Values in memory, and the arrays that they lead to.
#[derive(Default)]
pub struct Frame {
    /// Where each value begins, in blocks; then the result's.
    places: SmallVec<[usize; 8]>,
    blocks: SmallVec<[Block; 16]>,
    buffers: SmallVec<[Buffer; 4]>,
    /// Values that only their addresses are passed of.
    values: Vec<Vec<u64>>,
    /// Functions of Python, of which the addresses are passed.
    called: Vec<Arc<Called>>,
}

/// Finds each parameter's argument among those by position and by name; and `out`, if there is no such parameter and the function takes
/// arrays as numbers.
pub fn bind<'py>(
    plan: &Plan,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<(Values<'py>, Option<Bound<'py, PyAny>>)> {
    let (symbol, params) = (&plan.symbol, &plan.params);
    if args.len() > params.len() {
        let (n, m) = (params.len(), args.len());
        let takes = if n == 1 { "1 argument".into() } else { format!("{n} arguments") };
        return Err(PyTypeError::new_err(format!("{symbol}: it takes {takes}, not {m}: {}", plan.signature())));
    }
    let mut found: Values<'py> = args.iter().map(Some).collect();
    found.resize(params.len(), None);
    let mut out = None;
    for (key, value) in kwargs.into_iter().flatten() {
        let key = key.cast_into::<PyString>()?;
        let index = position(params, &key)?;
        let Some(index) = index else {
            if key.to_cow()? == "out" && plan.numbers().is_some() {
                out = Some(value).filter(|value| !value.is_none());
                continue;
            }
            let text = format!("{symbol}: it has no parameter `{key}`: {}", plan.signature());
            return Err(PyTypeError::new_err(text));
        };
        if found[index].replace(value).is_some() {
            return Err(PyTypeError::new_err(format!("{symbol}: `{key}` is given twice")));
        }
    }
    Ok((found, out))
}

/// The parameter of a name.
pub fn position(params: &[Arc<Param>], key: &Bound<'_, PyString>) -> PyResult<Option<usize>> {
    // Names of keywords are interned.
    if let Some(index) = params.iter().position(|p| p.key.is(key)) {
        return Ok(Some(index));
    }
    let key = key.to_cow()?;
    Ok(params.iter().position(|p| p.name == key && !p.name.is_empty()))
}

impl Plan {
    /// The parameters as the program writes them.
    pub fn signature(&self) -> String {
        let shown = |p: &Arc<Param>| if p.name.is_empty() { p.text.clone() } else { format!("{}: {}", p.name, p.text) };
        let params: Vec<String> = self.params.iter().map(shown).collect();
        let returned = match &*self.returned {
            Returned::Nothing => String::new(),
            _ => format!(" -> {}", self.result),
        };
        format!("{}({}){returned}", self.symbol, params.join(", "))
    }
}

impl Frame {
    fn reserve(&mut self, bytes: usize) -> usize {
        let place = self.blocks.len();
        self.places.push(place);
        self.blocks.resize(place + bytes.div_ceil(size_of::<Block>()), Block([0; 2]));
        place
    }

    fn words(&mut self, place: usize) -> &mut [u64] {
        let blocks = &mut self.blocks[place..];
        let n = blocks.len() * 2;
        // SAFETY: a block is two words.
        unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), n) }
    }

    fn bytes(&mut self, place: usize, n: usize) -> &mut [u8] {
        let blocks = &mut self.blocks[place..];
        // SAFETY: blocks are bytes without padding.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast::<u8>(), std::mem::size_of_val(blocks)) };
        &mut bytes[..n]
    }

    /// The values of a call.
    pub fn new(py: Python<'_>, function: &Function, values: &[Option<Bound<'_, PyAny>>]) -> PyResult<Frame> {
        let (plan, mut frame) = (&*function.plan, Frame::default());
        for (i, (param, value)) in plan.params.iter().zip(values).enumerate() {
            let Some(value) = value else {
                return Err(PyTypeError::new_err(missing(plan, values)));
            };
            match &param.kind {
                Kind::Function(Some(callback)) if value.is_callable() => {
                    let receiver = py.detach(|| function.function.receiver(i, received)).map_err(|e| raised(py, &e))?;
                    let program = function.program.clone_ref(py);
                    let called = Called::new(value.clone().unbind(), program, &plan.symbol, param, callback);
                    frame.call(receiver, Arc::new(called));
                }
                _ => frame.add(plan, param, value, function.program.get().device)?,
            }
        }
        match &*plan.returned {
            Returned::Nothing => {}
            Returned::Value(memory) => {
                frame.reserve(memory.size);
            }
            Returned::Buffer(_) => {
                frame.reserve(2 * size_of::<u64>());
            }
            Returned::Limited => {
                let (symbol, text) = (&plan.symbol, &plan.result);
                return Err(PyNotImplementedError::new_err(format!(
                    "{symbol}: its result is `{text}`, which Python does not have: write it to a parameter"
                )));
            }
        }
        Ok(frame)
    }

    /// Adds a function of Python as C passes it: the address of a C function, and that of its environment.
    fn call(&mut self, receiver: usize, called: Arc<Called>) {
        let place = self.reserve(16);
        let environment = std::ptr::from_ref(&*called).expose_provenance();
        self.words(place)[..2].copy_from_slice(&[receiver as u64, environment as u64]);
        self.called.push(called);
    }

    /// The first exception that a function of Python has raised.
    pub fn raised(&self) -> Option<PyErr> {
        self.called.iter().find_map(|called| called.raised())
    }

    /// Adds a value. Arrays are in the memory of a device of CUDA, if one is given.
    fn add(&mut self, plan: &Plan, param: &Param, value: &Bound<'_, PyAny>, device: Option<i32>) -> PyResult<()> {
        let symbol = &plan.symbol;
        let raise = |misfit: Misfit| misfit.raise(symbol, &param.shown());
        match &param.kind {
            Kind::Number(prim) => {
                let bits = number(value, *prim).map_err(raise)?;
                let place = self.reserve(8);
                // The lowest bytes are first.
                self.words(place)[0] = if cfg!(target_endian = "little") { bits } else { bits << (64 - prim.bits()) };
            }
            Kind::Value(memory) => {
                let place = self.reserve(memory.size);
                memory.write(value, self.bytes(place, memory.size)).map_err(raise)?;
            }
            // One that is read may be a value.
            Kind::Elements(to) if to.form == Form::One && !to.mutable && !Buffer::is_exported(value) => {
                let place = self.reserve(8);
                let mut words = vec![0; to.of.size.div_ceil(8)];
                to.of.write_words(value, &mut words).map_err(raise)?;
                self.words(place)[0] = words.as_ptr().expose_provenance() as u64;
                self.values.push(words);
            }
            Kind::Elements(to) => {
                let buffer = match device {
                    None => Buffer::of(value, to, &param.name),
                    Some(number) => Buffer::of_device(value, to, &param.name, number),
                };
                let buffer = buffer.map_err(|fault| raise(fault.into()))?;
                let place = self.reserve(to.form.n_words() * 8);
                buffer.words(to, self.words(place));
                self.buffers.push(buffer);
            }
            Kind::Function(callback) => {
                let (name, text) = (param.shown(), &param.text);
                let wanted = match callback {
                    Some(_) => format!("{}: pass something callable, or fix it to", kind_of(value)),
                    None => format!("a function, `{text}`, which Python does not have: fix it to"),
                };
                return Err(PyTypeError::new_err(format!(
                    "{symbol}: `{name}` is {wanted} one of the program, as in {symbol}.fix({name}=…)"
                )));
            }
            Kind::Limited => {
                let (name, text) = (param.shown(), &param.text);
                return Err(PyNotImplementedError::new_err(format!(
                    "{symbol}: `{name}` is `{text}`, which Python does not have: pass its parts as parameters"
                )));
            }
        }
        Ok(())
    }

    /// The addresses of the values, and of the result.
    pub fn addresses(&mut self) -> SmallVec<[*const (); 9]> {
        let base = self.blocks.as_mut_ptr();
        // One behind the last block is for a result of no size.
        self.places.iter().map(|place| base.wrapping_add(*place).cast_const().cast()).collect()
    }

    /// The bytes of the result, which is the last value.
    pub fn result(&mut self, size: usize) -> &[u8] {
        let place = self.places.last().copied().unwrap_or(0);
        self.bytes(place, size)
    }
}

impl Param {
    /// The name for messages.
    pub fn shown(&self) -> String {
        if self.name.is_empty() { "a parameter without a name".into() } else { self.name.clone() }
    }
}

fn missing(plan: &Plan, values: &[Option<Bound<'_, PyAny>>]) -> String {
    let names = plan.params.iter().zip(values).filter(|(_, value)| value.is_none());
    let names: Vec<String> = names.map(|(param, _)| format!("`{}`", param.shown())).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    format!("{}: {} {are} missing: {}", plan.symbol, names.join(", "), plan.signature())
}
