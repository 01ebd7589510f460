//! Calls of functions of numbers with arrays: the function is called for all elements, by a loop that the compiler makes with its code in
//! it. Shapes are broadcast as NumPy does it. Separate from other calls, which pass arrays as they are.

use crate::arguments::Values;
use crate::arrays::Buffer;
use crate::errors::{faulted, raised};
use crate::memory::{Form as Shape, Memory, dtype_name, number};
use crate::plan::{Elements, Form, Kind, Plan, Returned};
use nyala_embed::{Elements as Known, Prim, Untyped};
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};
use pyo3::{ffi, intern};

/// Limit on the dimensions of an array; NumPy has the same.
const MAX_DIMENSIONS: usize = 64;

impl Plan {
    /// The number that it returns, if it takes and returns nothing else.
    pub fn numbers(&self) -> Option<Prim> {
        let Returned::Value(Memory { form: Shape::Number(result), .. }) = &*self.returned else { return None };
        let takes = !self.params.is_empty() && self.params.len() < 64;
        let takes = takes && self.params.iter().all(|p| matches!(p.kind, Kind::Number(_)));
        takes.then_some(*result)
    }
}

/// Whether a value is an array with dimensions.
pub fn is_array(value: &Bound<'_, PyAny>) -> bool {
    let is_number = value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>();
    if is_number || value.is_instance_of::<PyBool>() || !Buffer::is_exported(value) {
        return false;
    }
    Buffer::has_dimensions(value)
}

/// An array that takes part.
struct Operand {
    /// What keeps the memory.
    _buffer: Buffer,
    address: *const (),
    shape: Vec<usize>,
    /// In bytes.
    strides: Vec<isize>,
}

/// The elements of a parameter or of a result.
fn elements(prim: Prim, mutable: bool) -> Elements {
    let size = (prim.bits() as usize).div_ceil(8);
    Elements { of: Memory { size, align: size, form: Shape::Number(prim) }, mutable, form: Form::Any }
}

impl Operand {
    fn new(value: &Bound<'_, PyAny>, prim: Prim, mutable: bool, plan: &Plan, name: &str) -> PyResult<Operand> {
        let to = elements(prim, mutable);
        let misfit = |fault: crate::memory::Fault| crate::memory::Misfit::from(fault).raise(&plan.symbol, name);
        let buffer = Buffer::of(value, &to, name).map_err(misfit)?;
        let (shape, strides) = buffer.layout();
        if shape.len() > MAX_DIMENSIONS {
            let text = format!("{}: `{name}` has more than {MAX_DIMENSIONS} dimensions", plan.symbol);
            return Err(PyValueError::new_err(text));
        }
        let mut words = [0; 1];
        buffer.words(&to, &mut words);
        Ok(Operand { address: std::ptr::with_exposed_provenance(words[0] as usize), _buffer: buffer, shape, strides })
    }

    /// The strides for a shape that it is broadcast to, which has as many dimensions or more.
    fn broadcast(&self, shape: &[usize]) -> Vec<isize> {
        let more = shape.len() - self.shape.len();
        let own = self.shape.iter().zip(&self.strides).zip(&shape[more..]);
        let own = own.map(|((n, stride), to)| if n == to { *stride } else { 0 });
        std::iter::repeat_n(0, more).chain(own).collect()
    }

    /// The first byte, and the end of the last element.
    fn range(&self, size: usize) -> (isize, isize) {
        let mut range = (self.address.addr() as isize, self.address.addr() as isize + size as isize);
        for (n, stride) in self.shape.iter().zip(&self.strides) {
            let far = (*n as isize - 1).max(0) * stride;
            if far < 0 { range.0 += far } else { range.1 += far }
        }
        range
    }
}

/// The shape that shapes are broadcast to.
fn common(plan: &Plan, operands: &[(usize, Operand)]) -> PyResult<Vec<usize>> {
    let n = operands.iter().map(|(_, o)| o.shape.len()).max().unwrap_or(0);
    let mut shape = vec![1; n];
    for (_, operand) in operands {
        let more = n - operand.shape.len();
        for (to, own) in shape[more..].iter_mut().zip(&operand.shape) {
            if *to == 1 {
                *to = *own;
            } else if *own != 1 && *own != *to {
                let shapes = operands.iter().map(|(i, o)| format!("`{}` {}", plan.params[*i].shown(), shown(&o.shape)));
                let shapes: Vec<String> = shapes.collect();
                let text = format!("{}: shapes do not fit each other: {}", plan.symbol, shapes.join(", "));
                return Err(PyValueError::new_err(text));
            }
        }
    }
    Ok(shape)
}

fn shown(shape: &[usize]) -> String {
    let parts: Vec<String> = shape.iter().map(|n| n.to_string()).collect();
    format!("({}{})", parts.join(", "), if parts.len() == 1 { "," } else { "" })
}

/// A new array of NumPy's.
fn empty<'py>(py: Python<'py>, plan: &Plan, shape: &[usize], prim: Prim) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import(intern!(py, "numpy")).map_err(|e| {
        let text =
            format!("{}: its result is an array of NumPy's, which cannot be imported: pass one as `out`", plan.symbol);
        let raised = PyImportError::new_err(text);
        raised.set_cause(py, Some(e));
        raised
    })?;
    numpy.call_method1(intern!(py, "empty"), (PyTuple::new(py, shape)?, dtype_name(prim)))
}

/// Calls a function for all elements.
pub fn call<'py>(
    py: Python<'py>,
    function: &Untyped,
    plan: &Plan,
    result: Prim,
    values: &Values<'py>,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let symbol = &plan.symbol;
    let (mut arrays, mut numbers, mut single) = (Vec::new(), vec![0u64; plan.params.len()], 0u64);
    for (i, (param, value)) in plan.params.iter().zip(values).enumerate() {
        let (Kind::Number(prim), Some(value)) = (&param.kind, value) else {
            return Err(PyTypeError::new_err(format!(
                "{symbol}: `{}` is missing: {}",
                param.shown(),
                plan.signature()
            )));
        };
        if is_array(value) {
            arrays.push((i, Operand::new(value, *prim, false, plan, &param.shown())?));
        } else {
            let bits = number(value, *prim).map_err(|m| m.raise(symbol, &param.shown()))?;
            numbers[i] = if cfg!(target_endian = "little") { bits } else { bits << (64 - prim.bits()) };
            single |= 1 << i;
        }
    }
    let shape = common(plan, &arrays)?;
    let out = match out {
        Some(out) => out,
        None => empty(py, plan, &shape, result)?,
    };
    let to = Operand::new(&out, result, true, plan, "out")?;
    // A result may be larger than what it is made of.
    let shape = match to.shape.len() >= shape.len()
        && shape.iter().rev().zip(to.shape.iter().rev()).all(|(n, m)| n == m || *n == 1)
    {
        true => to.shape.clone(),
        false => {
            let text = format!("{symbol}: `out` has the shape {}, expected {}", shown(&to.shape), shown(&shape));
            return Err(PyValueError::new_err(text));
        }
    };
    let size = |i: usize| match plan.params.get(i).map(|p| &p.kind) {
        Some(Kind::Number(prim)) => (prim.bits() as usize).div_ceil(8),
        _ => (result.bits() as usize).div_ceil(8),
    };
    let n_params = plan.params.len();
    let mut strides: Vec<(usize, Vec<isize>)> = arrays.iter().map(|(i, o)| (*i, o.broadcast(&shape))).collect();
    let own = to.range(size(n_params));
    for ((i, array), (_, strides)) in arrays.iter().zip(&strides) {
        let range = array.range(size(*i));
        let is_same = array.address == to.address && *strides == to.strides && size(*i) == size(n_params);
        if range.0 < own.1 && own.0 < range.1 && !is_same {
            let name = plan.params[*i].shown();
            let text = format!("{symbol}: `out` and `{name}` share memory in different places: pass {name}.copy()");
            return Err(PyValueError::new_err(text));
        }
    }
    strides.push((n_params, to.strides.clone()));
    if shape.contains(&0) {
        return Ok(out);
    }
    let (shape, strides) = together(shape, strides);

    // The last dimension is the loop's; its strides are in elements.
    let (inner, outer) = shape.split_last().map_or((1, &[][..]), |(n, outer)| (*n, outer));
    let mut steps = vec![0i64; n_params + 1];
    let mut is_side_by_side = true;
    for (i, strides) in &strides {
        let stride = strides.last().copied().unwrap_or(0);
        let size = size(*i) as isize;
        if let Some(stride) = strides.iter().find(|stride| *stride % size != 0) {
            let name = plan.params.get(*i).map_or("out".into(), |p| p.shown());
            let text =
                format!("{symbol}: `{name}` has elements {stride} bytes apart: pass numpy.ascontiguousarray({name})");
            return Err(PyValueError::new_err(text));
        }
        steps[*i] = (stride / size) as i64;
        is_side_by_side &= stride == size;
    }
    let known = Known { single, side_by_side: is_side_by_side };
    let run = py.detach(|| function.element_loop(known)).map_err(|e| raised(py, &e))?;
    let mut addresses: Vec<*const ()> = numbers.iter().map(|word| std::ptr::from_ref(word).cast()).collect();
    arrays.iter().for_each(|(i, o)| addresses[*i] = o.address);
    addresses.push(to.address);
    let mut at = vec![0usize; outer.len()];
    // SAFETY: the buffers have these elements, and stay exported until they are dropped, with the lock. Nothing of Python's is touched
    // without it. The function takes numbers only.
    let ended = unsafe {
        let state = ffi::PyEval_SaveThread();
        let ended = run.try_call(|run| {
            loop {
                run(&addresses, &steps, inner as i64);
                // The next row.
                let Some(d) = (0..outer.len()).rev().find(|&d| at[d] + 1 < outer[d]) else { break };
                for (i, strides) in &strides {
                    let back: isize = (d + 1..outer.len()).map(|e| at[e] as isize * strides[e]).sum();
                    addresses[*i] = addresses[*i].wrapping_byte_offset(strides[d] - back);
                }
                at[d] += 1;
                at[d + 1..].fill(0);
            }
        });
        nyala_embed::flush();
        ffi::PyEval_RestoreThread(state);
        ended
    };
    drop((arrays, to));
    ended.map_err(|fault| faulted(py, &fault))?;
    Ok(out)
}

/// Makes dimensions one that lie behind each other in all arrays, and leaves out those of one element.
fn together(shape: Vec<usize>, strides: Vec<(usize, Vec<isize>)>) -> (Vec<usize>, Vec<(usize, Vec<isize>)>) {
    let mut made: (Vec<usize>, Vec<(usize, Vec<isize>)>) = (Vec::new(), Vec::new());
    made.1.extend(strides.iter().map(|(i, _)| (*i, Vec::new())));
    for (d, &n) in shape.iter().enumerate().filter(|(_, n)| **n != 1) {
        let joins = made.0.last().is_some()
            && made.1.iter().zip(&strides).all(|((_, made), (_, own))| made.last() == Some(&(own[d] * n as isize)));
        for ((_, made), (_, own)) in made.1.iter_mut().zip(&strides) {
            if joins {
                made.pop();
            }
            made.push(own[d]);
        }
        match made.0.last_mut().filter(|_| joins) {
            Some(last) => *last *= n,
            None => made.0.push(n),
        }
    }
    made
}
