//! What the front ends make: a term, with names, types and places for those who need them.
//!
//! Separate, since DeepCPS and Staged-C become the same.

use crate::names::Names;
use crate::term::{Body, Terms, Var};
use crate::types::{Ty, TyNode, Types};
use nyala_base::{FileId, Sink, Sources, Span};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The languages, by the ending of a file's name.
const LANGUAGES: [(&str, Reader); 2] = [(".deepcps", each_alone), (".stagedc", together)];

/// Reads a program's files of a language.
type Reader = fn(&Sources, &[FileId], Said) -> Vec<Option<Program>>;

/// What a reader says besides the program.
pub(crate) struct Said<'a> {
    pub sink: &'a mut Sink,
    /// For an editor only.
    pub names: Option<&'a mut Names>,
}

fn each_alone(sources: &Sources, files: &[FileId], mut said: Said) -> Vec<Option<Program>> {
    let read = |&file: &FileId| {
        let said = Said { sink: said.sink, names: said.names.as_deref_mut() };
        crate::deepcps::read_named(sources, file, said)
    };
    files.iter().map(read).collect()
}

fn together(sources: &Sources, files: &[FileId], said: Said) -> Vec<Option<Program>> {
    vec![crate::stagedc::read(sources, files, said)]
}

/// Whether a file of that name is a program of one of these languages.
pub fn is_staged(name: &str) -> bool {
    LANGUAGES.iter().any(|l| name.ends_with(l.0))
}

/// Reads files, as DeepCPS unless their names say something else. Those in Staged-C are one program, those in DeepCPS one each.
/// `None`: what is wrong is in the sink.
pub fn read(sources: &Sources, files: &[FileId], sink: &mut Sink) -> Option<Vec<Program>> {
    read_named(sources, files, Said { sink, names: None })
}

/// What names mean in files, whatever their faults.
pub fn names(sources: &Sources, files: &[FileId]) -> Names {
    let mut names = Names::default();
    read_named(sources, files, Said { sink: &mut Sink::default(), names: Some(&mut names) });
    names
}

fn read_named(sources: &Sources, files: &[FileId], mut said: Said) -> Option<Vec<Program>> {
    let mut programs = Vec::new();
    for (i, (ending, reader)) in LANGUAGES.into_iter().enumerate() {
        let is_own = |file: &&FileId| {
            let name = sources.name(**file);
            name.ends_with(ending) || i == 0 && !is_staged(name)
        };
        let own: Vec<FileId> = files.iter().filter(is_own).copied().collect();
        if !own.is_empty() {
            programs.extend(reader(sources, &own, Said { sink: said.sink, names: said.names.as_deref_mut() }));
        }
    }
    programs.into_iter().collect()
}

/// A program that follows the rules of names and types.
#[derive(Clone)]
pub struct Program {
    pub terms: Terms,
    pub body: Body,
    /// What the program ends with, if it ends with `let`s.
    pub exports: Vec<Export>,
    pub signatures: Signatures,
    /// The program has one result, a function `λ(k). k before last`, where `before` has the results before the last one in the same way. So no
    /// more than one variable has them while the program goes on to its end.
    pub is_bundled: bool,
    /// Bodies of the residual program that are active at the same time run in the order of their places, as Staged-C has it;
    /// otherwise the deepest runs first. Evaluation executes nothing that has effects, so that its own order does not matter.
    pub in_order: bool,
}

/// A function that other code calls.
pub struct Callable {
    pub name: Arc<str>,
    pub place: Span,
    /// Its types in Impala: `(i32, &[f32]) -> f32`.
    pub signature: String,
}

impl Program {
    /// The exported functions that take and give numbers.
    pub fn callables(&mut self) -> Vec<Callable> {
        let mut found = Vec::new();
        for Export { name, var, .. } in &self.exports {
            let TyNode::Fn(params) = self.signatures.of(&self.terms, *var) else { continue };
            let Some((&last, params)) = params.split_last() else { continue };
            let params: Option<Vec<String>> = params.iter().map(|&p| self.signatures.impala(p)).collect();
            let result = match self.signatures.get(last) {
                TyNode::Fn(results) => match *results {
                    [] => Some("()".to_string()),
                    [result] => self.signatures.impala(result),
                    _ => None,
                },
                _ => None,
            };
            if let (Some(params), Some(result)) = (params, result) {
                let place = self.signatures.place(&self.terms, *var);
                let signature = format!("({}) -> {result}", params.join(", "));
                found.push(Callable { name: name.clone(), place, signature });
            }
        }
        found
    }
}

/// A function or value that the program makes available.
#[derive(Clone, Debug)]
pub struct Export {
    pub name: Arc<str>,
    /// With its type and place.
    pub var: Var,
    /// Which of the program's results it is.
    pub at: usize,
    /// Other code of the program uses it, too.
    pub is_used: bool,
}

/// Types and places of the variables of the source. Copies of variables have those of their origins.
#[derive(Clone)]
pub struct Signatures {
    pub(crate) types: Types,
    /// The type of faulty code.
    pub(crate) error: Ty,
    pub(crate) of_vars: FxHashMap<Var, Ty>,
    pub(crate) places: FxHashMap<Var, Span>,
}

impl Signatures {
    /// The type of a variable; that of faulty code for one that is not of the source.
    pub fn ty(&self, terms: &Terms, var: Var) -> Ty {
        self.of_vars.get(&terms.origin(var)).copied().unwrap_or(self.error)
    }

    pub fn of(&mut self, terms: &Terms, var: Var) -> TyNode {
        let ty = self.ty(terms, var);
        self.types.get(ty)
    }

    pub fn get(&mut self, ty: Ty) -> TyNode {
        self.types.get(ty)
    }

    /// A type of numbers as Impala has it.
    fn impala(&mut self, ty: Ty) -> Option<String> {
        let name = match self.get(ty) {
            TyNode::Bool => "bool",
            TyNode::Int => "i32",
            TyNode::Float => "f32",
            TyNode::Double => "f64",
            TyNode::Array(element) => {
                let is_array = matches!(self.get(element), TyNode::Array(_));
                return self.impala_element(element).filter(|_| !is_array).map(|of| format!("&[{of}]"));
            }
            _ => return None,
        };
        Some(name.into())
    }

    /// In memory, an aggregate is a tuple.
    fn impala_element(&mut self, ty: Ty) -> Option<String> {
        let Some(parts) = self.types.aggregate(ty) else { return self.impala(ty) };
        // So it has no great depth.
        self.types.leaves(ty)?;
        let parts: Option<Vec<String>> = parts.iter().map(|&p| self.impala_element(p)).collect();
        Some(format!("({})", parts?.join(", ")))
    }

    /// Where the variable is declared.
    pub fn place(&self, terms: &Terms, var: Var) -> Span {
        self.places.get(&terms.origin(var)).copied().unwrap_or(Span::NONE)
    }
}
