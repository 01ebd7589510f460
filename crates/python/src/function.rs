//! `nyala.Function`: a function of a program, or a variant of one, that Python calls. Separate from the program, of which there are many
//! such handles.

use crate::arguments::{Frame, bind, position};
use crate::arrays::Buffer;
use crate::broadcast;
use crate::errors::{Diagnostic, faulted, raised};
use crate::memory::{Misfit, kind_of, number};
use crate::owned::Owned;
use crate::plan::{Elements, Form, Kind, Param, Plan, Returned};
use crate::program::Program;
use nyala_embed::{InMemory, Partial, Untyped};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

// Its documentation is that of the function.
#[pyclass(frozen, module = "nyala")]
pub struct Function {
    pub program: Py<Program>,
    pub function: Untyped,
    pub plan: Arc<Plan>,
    /// What calls it, made for the first call.
    code: OnceLock<InMemory>,
}

/// What a variant took to build, in seconds, and what the compiler said about it.
#[pyclass(frozen, module = "nyala", get_all)]
pub struct Stats {
    /// The time of partial evaluation.
    partial_evaluation: f64,
    /// The time of everything, from the graph to code.
    total: f64,
    /// Warnings.
    warnings: Vec<Py<Diagnostic>>,
}

#[pymethods]
impl Stats {
    fn __repr__(&self) -> String {
        let ms = |s: f64| format!("{:.1} ms", s * 1e3);
        format!("<built in {}, {} of it partial evaluation>", ms(self.total), ms(self.partial_evaluation))
    }
}

impl Function {
    /// A function of which more is fixed.
    fn variant(&self, py: Python<'_>, function: Untyped, plan: Arc<Plan>) -> Function {
        Function { program: self.program.clone_ref(py), function, plan, code: OnceLock::new() }
    }

    /// Fixes a parameter to a value.
    fn fix_one(&self, partial: &Partial, param: &Param, value: &Bound<'_, PyAny>) -> PyResult<Partial> {
        let (py, symbol, name) = (value.py(), &self.plan.symbol, &param.name);
        let raise = |misfit: Misfit| misfit.raise(symbol, &param.shown());
        let fix = |values: *const (), count| {
            // SAFETY: so many values of the parameter's type are there.
            unsafe { partial.fix_raw(name, values, count) }.map_err(|e| raised(py, &e))
        };
        match &param.kind {
            Kind::Number(prim) => {
                let bits = number(value, *prim).map_err(raise)?;
                let bits = if cfg!(target_endian = "little") { bits } else { bits << (64 - prim.bits()) };
                fix((&raw const bits).cast(), 1)
            }
            Kind::Elements(to) if to.mutable => Err(PyTypeError::new_err(format!(
                "{symbol}: `{name}` is `{}`, which is written: it cannot be fixed",
                param.text
            ))),
            Kind::Elements(Elements { form: Form::Area, .. }) | Kind::Limited => {
                let text = &param.text;
                Err(PyTypeError::new_err(format!(
                    "{symbol}: `{name}` is `{text}`, which cannot be fixed: fix a slice and its width"
                )))
            }
            Kind::Elements(to) if to.form == Form::One && !Buffer::is_exported(value) => {
                let mut bytes = vec![0u64; to.of.size.div_ceil(8)];
                to.of.write_words(value, &mut bytes).map_err(raise)?;
                fix(bytes.as_ptr().cast(), 1)
            }
            Kind::Elements(to) => {
                let buffer = Buffer::of(value, to, name).map_err(|fault| raise(fault.into()))?;
                let mut words = [0; 4];
                buffer.words(to, &mut words);
                fix(std::ptr::with_exposed_provenance(words[0] as usize), buffer.count(to))
            }
            Kind::Value(of) => {
                let mut bytes = vec![0u64; of.size.div_ceil(8)];
                of.write_words(value, &mut bytes).map_err(raise)?;
                fix(bytes.as_ptr().cast(), 1)
            }
            Kind::Function(_) => {
                let Ok(function) = value.cast::<Function>() else {
                    let found = kind_of(value);
                    let wanted = format!("expected a function of the program, `{}`", param.text);
                    return Err(PyTypeError::new_err(format!("{symbol}: `{name}` is {found}, {wanted}")));
                };
                // SAFETY: whoever wrote the program vouches for its functions.
                partial.fix(name, unsafe { function.get().function.partial() }).map_err(|e| raised(py, &e))
            }
        }
    }

    /// The function of a key, which `__reduce__` has given.
    pub fn by_key(slf: &Bound<'_, Function>, key: &[u8]) -> PyResult<Function> {
        let (py, this) = (slf.py(), slf.get());
        // SAFETY: whoever wrote the program vouches for its functions.
        let partial = unsafe { this.function.program().partial_by_key(key) }.map_err(|e| raised(py, &e))?;
        let function = py.detach(|| partial.build_untyped()).map_err(|e| raised(py, &e))?;
        let plan = this.plan.without(partial.fixed_parameters().into());
        Ok(this.variant(py, function, plan))
    }

    pub fn new(py: Python<'_>, program: Py<Program>, function: Untyped) -> Function {
        let plan = Arc::new(Plan::new(py, &function));
        Function { program, function, plan, code: OnceLock::new() }
    }

    /// What calls it.
    fn code(&self, py: Python<'_>) -> PyResult<&InMemory> {
        if let Some(code) = self.code.get() {
            return Ok(code);
        }
        let made = py.detach(|| self.function.in_memory()).map_err(|e| raised(py, &e))?;
        Ok(self.code.get_or_init(|| made))
    }
}

/// A call that runs without the interpreter's lock.
struct WithoutLock<'a> {
    code: &'a InMemory,
    addresses: &'a [*const ()],
}

// SAFETY: what the addresses lead to is used by the calling thread, which waits.
unsafe impl Send for WithoutLock<'_> {}

impl WithoutLock<'_> {
    /// # Safety
    /// As for [`InMemory::try_call`].
    unsafe fn run(self) -> Result<(), nyala_embed::Fault> {
        // SAFETY: the caller's promise.
        unsafe { self.code.try_call(self.addresses) }
    }
}

#[pymethods]
impl Function {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (values, out) = bind(&self.plan, args, kwargs)?;
        if let Some(result) = self.plan.numbers()
            && (out.is_some() || values.iter().flatten().any(broadcast::is_array))
        {
            return broadcast::call(py, &self.function, &self.plan, result, &values, out);
        }
        let mut frame = Frame::new(py, self, &values)?;
        let code = self.code(py)?;
        let addresses = frame.addresses();
        let call = WithoutLock { code, addresses: &addresses };
        // What others have launched may write the arrays, and what the code launches is over when the call is.
        let wait = || match self.program.get().device {
            Some(number) => py.import("nyala._device")?.call_method1("wait", (number,)).map(drop),
            None => Ok(()),
        };
        wait()?;
        // SAFETY: the plan is of the function's types; buffers stay exported until the frame is dropped, with the lock. Nothing of
        // Python's is touched without it. What the function does with the elements, whoever wrote it vouches for.
        let ended = py.detach(move || {
            let ended = unsafe { call.run() };
            nyala_embed::flush();
            ended
        });
        if let Err(fault) = ended {
            return Err(frame.raised().unwrap_or_else(|| faulted(py, &fault)));
        }
        wait()?;
        match &*self.plan.returned {
            Returned::Value(memory) => {
                let program = self.program.bind(py);
                memory.read(py, frame.result(memory.size), &|of| Program::class(program, of))
            }
            Returned::Buffer(of) => {
                let words = frame.result(2 * size_of::<u64>());
                let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|k| words[8 * i + k]));
                Owned::view(py, word(0), word(1), of)
            }
            Returned::Nothing | Returned::Limited => Ok(py.None().into_bound(py)),
        }
    }

    /// The function's name.
    #[getter]
    fn __name__(&self) -> &str {
        &self.plan.symbol
    }

    #[getter]
    fn __qualname__(&self) -> &str {
        &self.plan.symbol
    }

    /// The program that it belongs to.
    #[getter]
    fn program(&self) -> &Py<Program> {
        &self.program
    }

    /// The function as the program writes it.
    #[getter]
    fn text(&self) -> &str {
        self.function.text()
    }

    /// The comment above it in the program.
    #[getter]
    fn comment(&self) -> String {
        self.function.comment()
    }

    /// Names and types, as the program writes them, of the parameters.
    #[getter]
    fn parameters(&self) -> Vec<(&str, &str)> {
        self.plan.params.iter().map(|p| (&*p.name, &*p.text)).collect()
    }

    /// The type of the result as the program writes it.
    #[getter]
    fn result(&self) -> &str {
        &self.plan.result
    }

    #[getter]
    fn __doc__(slf: &Bound<'_, Function>) -> PyResult<Py<PyAny>> {
        slf.py().import("nyala._describe")?.call_method1("doc", (slf,)).map(Bound::unbind)
    }

    #[getter]
    fn __signature__(slf: &Bound<'_, Function>) -> PyResult<Py<PyAny>> {
        slf.py().import("nyala._describe")?.call_method1("signature", (slf,)).map(Bound::unbind)
    }

    fn __repr__(&self) -> String {
        format!("<nyala function {}>", self.plan.signature())
    }

    /// The function with parameters fixed, by their names, to values that it is compiled for: numbers, structs, arrays, which are copied,
    /// and functions of the program. For equal values it is compiled once.
    #[pyo3(signature = (**values))]
    fn fix(slf: &Bound<'_, Function>, values: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Function>> {
        let (py, this) = (slf.py(), slf.get());
        let Some(values) = values else { return Ok(slf.clone().unbind()) };
        // SAFETY: whoever wrote the program vouches for its functions.
        let mut partial = unsafe { this.function.partial() }.clone();
        let mut fixed = SmallVec::new();
        for (key, value) in values {
            let key = key.cast_into::<PyString>()?;
            let Some(index) = position(&this.plan.params, &key)? else {
                let (symbol, told) = (&this.plan.symbol, this.plan.signature());
                return Err(PyTypeError::new_err(format!("{symbol}: it has no parameter `{key}`: {told}")));
            };
            partial = this.fix_one(&partial, &this.plan.params[index], &value)?;
            fixed.push(index);
        }
        fixed.sort_unstable();
        let function = py.detach(|| partial.build_untyped()).map_err(|e| raised(py, &e))?;
        Py::new(py, this.variant(py, function, this.plan.without(fixed)))
    }

    /// What a variant took to build; None for a function of the program itself.
    fn stats(&self, py: Python<'_>) -> PyResult<Option<Stats>> {
        let Some(stats) = self.function.stats() else { return Ok(None) };
        let warnings = stats.warnings.iter().map(|d| Py::new(py, Diagnostic::of(d)));
        Ok(Some(Stats {
            partial_evaluation: stats.partial_evaluation.as_secs_f64(),
            total: stats.total.as_secs_f64(),
            warnings: warnings.collect::<PyResult<_>>()?,
        }))
    }

    /// What partial evaluation did in it, and why: a text, which a notebook shows as a page with source and residual program.
    fn explain<'py>(slf: &Bound<'py, Function>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let text = py.detach(|| this.function.explain()).map_err(|e| raised(py, &e))?;
        py.import("nyala._describe")?.call_method1("Explanation", (text, slf))
    }

    /// The page that a notebook shows of `explain()`.
    fn _explain_html(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.function.explain_html()).map_err(|e| raised(py, &e))
    }

    /// Functions are pickled as their program, which is compiled where it arrives, their name and what is fixed.
    fn __reduce__<'py>(slf: &Bound<'py, Function>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        // SAFETY: whoever wrote the program vouches for its functions.
        let partial = unsafe { this.function.partial() };
        let key = (!partial.fixed_parameters().is_empty()).then(|| PyBytes::new(py, partial.key()));
        let args = (&this.program, &this.plan.symbol, key).into_pyobject(py)?;
        Ok((py.import("nyala._native")?.getattr("_function")?, args))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.program)
    }
}
