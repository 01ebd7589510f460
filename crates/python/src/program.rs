//! `nyala.Program`: a compiled program, and compiling. Separate from its functions, which are called.

use crate::errors::{Diagnostic, raised};
use crate::function::Function;
use crate::memory::{Form, Memory};
use nyala_embed::{Check, Compiler, Error, ExportedType, Stage};
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// A compiled program. Its attributes are the functions that it exports.
#[pyclass(frozen, module = "nyala", weakref)]
pub struct Program {
    program: nyala_embed::Program,
    /// Names and texts of the files, and the options that it was compiled with.
    files: Vec<(String, String)>,
    options: Py<PyDict>,
    /// The number of the device of CUDA whose memory arrays are in; they are in the host's otherwise.
    pub device: Option<i32>,
    functions: Mutex<HashMap<String, Py<Function>>>,
    /// The classes of structs, by their index.
    classes: Mutex<HashMap<usize, Py<PyAny>>>,
}

/// The compiler with options by their names.
fn compiler(options: &Bound<'_, PyDict>) -> PyResult<Compiler> {
    let mut compiler = Compiler::new();
    for (key, value) in options {
        let key = key.cast_into::<PyString>()?;
        compiler = match &*key.to_cow()? {
            "checked" => match value.extract()? {
                true => compiler.check(Check::Bounds).check(Check::Overflow).check(Check::Uninitialized),
                false => compiler,
            },
            "level" => match value.extract::<i64>()? {
                level @ 0..=3 => compiler.opt_level(level as u8),
                level => return Err(PyValueError::new_err(format!("`level` is {level}, expected 0 to 3"))),
            },
            "cpu" => match value.extract::<Option<String>>()? {
                Some(cpu) => compiler.cpu(&cpu),
                None => compiler,
            },
            "libraries" => {
                let folders: Vec<PathBuf> = value.extract()?;
                folders.into_iter().fold(compiler, Compiler::library_folder)
            }
            "define" => {
                let defined: Vec<(String, String)> = value.extract()?;
                defined.iter().fold(compiler, |c, (name, value)| c.define(name, value))
            }
            "wrap" => compiler.wrap(value.extract()?),
            "partial_evaluation" => compiler.partial_evaluation(value.extract()?),
            "budget" => compiler.budget(value.extract()?),
            "allow" => value.extract::<Vec<String>>()?.iter().fold(compiler, |c, code| c.allow(code)),
            "deny" => value.extract::<Vec<String>>()?.iter().fold(compiler, |c, code| c.deny(code)),
            "cache" => compiler.keep_code(value.extract()?),
            // What the arrays of calls are, not the code.
            "device" => compiler,
            "variants" => compiler.keep_variants(value.extract()?),
            other => return Err(PyTypeError::new_err(format!("there is no option `{other}`"))),
        };
    }
    Ok(compiler)
}

/// Compiles files, given by names and texts, with options.
#[pyfunction]
pub fn compile(py: Python<'_>, files: Vec<(String, String)>, options: Bound<'_, PyDict>) -> PyResult<Program> {
    let compiler = compiler(&options)?;
    let device = match options.get_item("device")?.filter(|device| !device.is_none()) {
        Some(device) => Some(py.import("nyala._device")?.call_method1("number", (device,))?.extract()?),
        None => None,
    };
    let given: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let program = py.detach(|| compiler.compile_files(&given)).map_err(|e| raised(py, &e))?;
    let options = options.copy()?.unbind();
    Ok(Program { program, files, options, device, functions: Mutex::default(), classes: Mutex::default() })
}

/// A function by its name and the key of what is fixed, as pickles have it.
#[pyfunction]
#[pyo3(signature = (program, name, key))]
pub fn _function(program: &Bound<'_, Program>, name: &str, key: Option<&[u8]>) -> PyResult<Py<Function>> {
    let function = Program::function(program, name)?.map_err(PyAttributeError::new_err)?;
    match key {
        None => Ok(function),
        Some(key) => Py::new(program.py(), Function::by_key(function.bind(program.py()), key)?),
    }
}

/// Writes out what programs have printed.
#[pyfunction]
pub fn flush(py: Python<'_>) {
    py.detach(nyala_embed::flush);
}

impl Program {
    /// A function by its symbol, or the exception's text.
    fn function(slf: &Bound<'_, Program>, name: &str) -> PyResult<Result<Py<Function>, String>> {
        let py = slf.py();
        let this = slf.get();
        let known = || this.functions.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(function) = known().get(name) {
            return Ok(Ok(function.clone_ref(py)));
        }
        let untyped = match this.program.untyped(name) {
            Ok(untyped) => untyped,
            Err(e @ Error::NoSuchFunction { .. }) => return Ok(Err(e.to_string())),
            Err(e) => return Err(raised(py, &e)),
        };
        let made = Py::new(py, Function::new(py, slf.clone().unbind(), untyped))?;
        // Another thread may have made it meanwhile.
        Ok(Ok(known().entry(name.into()).or_insert(made).clone_ref(py)))
    }

    /// The structs that Python has, by their names.
    fn structs(&self) -> impl Iterator<Item = (&str, Memory)> {
        let all = self.program.signatures();
        let memory = |i| Memory::of(&ExportedType::Struct(i), all);
        all.structs.iter().enumerate().filter_map(move |(i, of)| Some((of.name.as_str(), memory(i)?)))
    }

    /// A function, or the class of a struct; or the exception's text.
    fn named(slf: &Bound<'_, Program>, name: &str) -> PyResult<Result<Py<PyAny>, String>> {
        let missing = match Program::function(slf, name)? {
            Ok(function) => return Ok(Ok(function.into_any())),
            Err(missing) => missing,
        };
        match slf.get().structs().find(|(of, _)| *of == name) {
            Some((_, of)) => Ok(Ok(Program::class(slf, &of)?.unbind())),
            None => Ok(Err(missing)),
        }
    }

    /// The class of a struct.
    pub fn class<'py>(slf: &Bound<'py, Program>, of: &Memory) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let Form::Struct(name, index, _) = &of.form else {
            return Err(PyTypeError::new_err(format!("`{}` is no struct", of.text())));
        };
        let known = || slf.get().classes.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(class) = known().get(index) {
            return Ok(class.bind(py).clone());
        }
        let made = py.import("nyala._describe")?.call_method1("struct", (name, of.described(py)?))?.unbind();
        Ok(known().entry(*index).or_insert(made).bind(py).clone())
    }
}

#[pymethods]
impl Program {
    fn __getattr__(slf: &Bound<'_, Program>, name: &str) -> PyResult<Py<PyAny>> {
        Program::named(slf, name)?.map_err(PyAttributeError::new_err)
    }

    fn __getitem__(slf: &Bound<'_, Program>, name: &str) -> PyResult<Py<PyAny>> {
        Program::named(slf, name)?.map_err(PyKeyError::new_err)
    }

    fn __dir__<'py>(slf: &Bound<'py, Program>) -> PyResult<Bound<'py, PyList>> {
        let own = slf.get_type().dir()?;
        let this = slf.get();
        this.program.functions().try_for_each(|(symbol, _)| own.append(symbol))?;
        this.structs().try_for_each(|(name, _)| own.append(name))?;
        Ok(own)
    }

    fn __repr__(&self) -> String {
        let names: Vec<&str> = self.program.functions().map(|(symbol, _)| symbol).collect();
        let file = self.files.first().map_or("", |(name, _)| name.as_str());
        format!("<nyala program {file}: {}>", names.join(", "))
    }

    /// The exported functions as the program writes them, by their names.
    #[getter]
    fn functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        self.program.functions().try_for_each(|(symbol, text)| found.set_item(symbol, text))?;
        Ok(found)
    }

    /// What the compiler said about the program.
    #[getter]
    fn warnings(&self) -> Vec<Diagnostic> {
        self.program.warnings().iter().map(Diagnostic::of).collect()
    }

    /// Names and texts of the files that it was compiled from.
    #[getter]
    fn files(&self) -> Vec<(String, String)> {
        self.files.clone()
    }

    /// The options that it was compiled with.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.options.bind(py).copy()
    }

    /// The program, or one function of it, as text at a stage: `graph`, `residual`, `flat`, `llvm`, `asm` or `c`.
    #[pyo3(signature = (stage, function = None))]
    fn emit(&self, py: Python<'_>, stage: &str, function: Option<&str>) -> PyResult<String> {
        let stage = match stage {
            "graph" => Stage::Graph,
            "residual" => Stage::Residual,
            "flat" => Stage::Flat,
            "llvm" => Stage::Llvm,
            "asm" => Stage::Assembly,
            "c" => Stage::C,
            other => {
                let text = format!("`stage` is {other:?}, expected graph, residual, flat, llvm, asm or c");
                return Err(PyValueError::new_err(text));
            }
        };
        py.detach(|| self.program.emit(stage, function)).map_err(|e| raised(py, &e))
    }

    /// How many variants of functions are kept, and how often one was found, was built, and was dropped for another.
    #[getter]
    fn variants<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.program.variants();
        let found = PyDict::new(py);
        found.set_item("kept", counts.kept)?;
        found.set_item("found", counts.found)?;
        found.set_item("built", counts.built)?;
        found.set_item("dropped", counts.dropped)?;
        Ok(found)
    }

    /// Programs are pickled as their files and options, and compiled where they arrive; once for equal ones.
    fn __reduce__<'py>(slf: &Bound<'py, Program>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        let args = (&this.files, &this.options).into_pyobject(py)?;
        Ok((py.import("nyala._pickled")?.getattr("program")?, args))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.options)?;
        if let Ok(functions) = self.functions.try_lock() {
            functions.values().try_for_each(|f| visit.call(f))?;
        }
        if let Ok(classes) = self.classes.try_lock() {
            classes.values().try_for_each(|c| visit.call(c))?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        if let Ok(mut functions) = self.functions.try_lock() {
            functions.clear();
        }
        if let Ok(mut classes) = self.classes.try_lock() {
            classes.clear();
        }
    }
}
