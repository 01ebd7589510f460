//! Functions of Python as arguments: what compiled code calls, and what it leads to. Separate from other arguments, which are memory that
//! nobody calls.
//!
//! Code is called without the interpreter's lock, and takes it for each call of a function of Python. An exception ends the call of the
//! program, as a panic does, and is raised there.

use crate::memory::Memory;
use crate::plan::{Callback, Param};
use crate::program::Program;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Arc, Mutex};

/// A function of Python that a program calls, and its exception.
pub struct Called {
    pub callable: Py<PyAny>,
    pub program: Py<Program>,
    /// The name of the function that is called with it.
    pub symbol: String,
    pub param: Arc<Param>,
    pub callback: Arc<Callback>,
    raised: Mutex<Option<PyErr>>,
}

impl Called {
    pub fn new(
        callable: Py<PyAny>,
        program: Py<Program>,
        symbol: &str,
        param: &Arc<Param>,
        callback: &Arc<Callback>,
    ) -> Called {
        let (param, callback) = (param.clone(), callback.clone());
        Called { callable, program, symbol: symbol.into(), param, callback, raised: Mutex::default() }
    }

    /// The first exception.
    pub fn raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(|e| e.into_inner()).take()
    }

    /// Calls the function.
    ///
    /// # Safety
    /// The addresses are those of values of its parameters, and of its result.
    unsafe fn call(&self, py: Python<'_>, addresses: *const *mut ()) -> PyResult<()> {
        let program = self.program.bind(py);
        let class = |of: &Memory| Program::class(program, of);
        let mut args = Vec::new();
        for (i, memory) in self.callback.params.iter().enumerate() {
            // SAFETY: the caller's promise.
            let bytes = unsafe { std::slice::from_raw_parts((*addresses.add(i)).cast::<u8>(), memory.size) };
            args.push(memory.read(py, bytes, &class)?);
        }
        let result = self.callable.bind(py).call1(PyTuple::new(py, args)?)?;
        if let Some(memory) = &self.callback.result {
            let n = self.callback.params.len();
            // SAFETY: the caller's promise.
            let bytes = unsafe { std::slice::from_raw_parts_mut((*addresses.add(n)).cast::<u8>(), memory.size) };
            bytes.fill(0);
            let name = format!("{}(…)", self.param.shown());
            memory.write(&result, bytes).map_err(|misfit| misfit.raise(&self.symbol, &name))?;
        }
        Ok(())
    }
}

/// What compiled code calls instead of a function of Python.
///
/// # Safety
/// The environment is a [`Called`], which lives; the addresses are those of values of its parameters, and of its result.
pub unsafe extern "C" fn received(environment: *const (), addresses: *const *mut ()) {
    // SAFETY: the caller's promise.
    let called = unsafe { &*environment.cast::<Called>() };
    let has_ended = Python::attach(|py| {
        // Others have raised already: the call ends.
        if called.raised.lock().unwrap_or_else(|e| e.into_inner()).is_some() {
            return false;
        }
        // SAFETY: the caller's promise.
        match unsafe { called.call(py, addresses) } {
            Ok(()) => true,
            Err(raised) => {
                called.raised.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(raised);
                false
            }
        }
    });
    if !has_ended {
        // SAFETY: nothing is left to drop here.
        unsafe { nyala_embed::panic(c"a function of Python raised an exception") }
    }
}
