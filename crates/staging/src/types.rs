//! Types of DeepCPS, and their inference by unification.
//!
//! Separate from the reader, which only asks whether two types are one. Types may be cyclic: a function may be passed to itself. So
//! unification links classes before it compares what is in them, and ends since there is one class less each time.

nyala_base::define_id!(
    /// A type of a [`Types`].
    pub struct Ty, "t"
);

#[derive(Clone, Debug)]
pub enum TyNode {
    Bool,
    Int,
    Float,
    Double,
    /// A literal that `print` takes.
    Text,
    Stage,
    Fn(Box<[Ty]>),
    /// Of numbers or `bool`s.
    Array(Ty),
    /// Not known yet.
    Open,
    /// Of faulty code: is any type, so that one fault is reported once.
    Error,
    Same(Ty),
}

#[derive(Clone, Default)]
pub struct Types {
    nodes: Vec<TyNode>,
}

/// Limit on the parts of an aggregate in memory, with those of its parts.
pub const MAX_LEAVES: usize = 256;

/// How deep types are shown.
const MAX_SHOWN: usize = 4;

impl Types {
    pub fn add(&mut self, node: TyNode) -> Ty {
        self.nodes.push(node);
        Ty((self.nodes.len() - 1) as u32)
    }

    pub fn open(&mut self) -> Ty {
        self.add(TyNode::Open)
    }

    pub fn find(&mut self, mut ty: Ty) -> Ty {
        let mut root = ty;
        while let TyNode::Same(other) = self.nodes[root.0 as usize] {
            root = other;
        }
        while let TyNode::Same(other) = self.nodes[ty.0 as usize] {
            self.nodes[ty.0 as usize] = TyNode::Same(root);
            ty = other;
        }
        root
    }

    pub fn get(&mut self, ty: Ty) -> TyNode {
        let root = self.find(ty);
        self.nodes[root.0 as usize].clone()
    }

    /// Makes both one type; `false` if they can't be.
    pub fn unify(&mut self, a: Ty, b: Ty) -> bool {
        let mut work = vec![(a, b)];
        while let Some((a, b)) = work.pop() {
            let (a, b) = (self.find(a), self.find(b));
            if a == b {
                continue;
            }
            let link = match (&self.nodes[a.0 as usize], &self.nodes[b.0 as usize]) {
                (TyNode::Error, _) | (_, TyNode::Error) => continue,
                (TyNode::Open, _) => (a, b),
                (_, TyNode::Open) => (b, a),
                (TyNode::Bool, TyNode::Bool)
                | (TyNode::Int, TyNode::Int)
                | (TyNode::Float, TyNode::Float)
                | (TyNode::Double, TyNode::Double)
                | (TyNode::Text, TyNode::Text)
                | (TyNode::Stage, TyNode::Stage) => (a, b),
                (TyNode::Array(of_a), TyNode::Array(of_b)) => {
                    work.push((*of_a, *of_b));
                    (a, b)
                }
                (TyNode::Fn(of_a), TyNode::Fn(of_b)) if of_a.len() == of_b.len() => {
                    work.extend(of_a.iter().copied().zip(of_b.iter().copied()));
                    (a, b)
                }
                _ => return false,
            };
            self.nodes[link.0.0 as usize] = TyNode::Same(link.1);
        }
        true
    }

    /// The types of an aggregate's parts. It is a function that calls another one with them.
    pub fn aggregate(&mut self, ty: Ty) -> Option<Box<[Ty]>> {
        let TyNode::Fn(of) = self.get(ty) else { return None };
        match (&*of, of.first().map(|&f| self.get(f))) {
            ([_], Some(TyNode::Fn(parts))) if !parts.is_empty() => Some(parts),
            _ => None,
        }
    }

    /// The parts of an aggregate in memory that are no aggregates; `None` where there are too many, or one can't be in memory.
    pub fn leaves(&mut self, ty: Ty) -> Option<Vec<Ty>> {
        let (mut leaves, mut looked_at) = (Vec::new(), 0);
        let mut work: Vec<Ty> = self.aggregate(ty)?.into_vec();
        work.reverse();
        while let Some(part) = work.pop() {
            looked_at += 1;
            match self.get(part) {
                TyNode::Bool | TyNode::Int | TyNode::Float | TyNode::Double | TyNode::Array(_) => leaves.push(part),
                _ if looked_at > 2 * MAX_LEAVES => return None,
                _ => work.extend(self.aggregate(part)?.iter().rev()),
            }
        }
        Some(leaves).filter(|l| l.len() <= MAX_LEAVES)
    }

    pub fn show(&mut self, ty: Ty) -> String {
        self.show_within(ty, 0)
    }

    fn show_within(&mut self, ty: Ty, depth: usize) -> String {
        match self.get(ty) {
            TyNode::Bool => "bool".into(),
            TyNode::Int => "int".into(),
            TyNode::Float => "float".into(),
            TyNode::Double => "double".into(),
            TyNode::Text => "text".into(),
            TyNode::Stage => "stage".into(),
            TyNode::Fn(_) | TyNode::Array(_) if depth == MAX_SHOWN => "…".into(),
            TyNode::Array(of) => format!("[{}]", self.show_within(of, depth + 1)),
            TyNode::Fn(params) => {
                let params: Vec<String> = params.iter().map(|&p| self.show_within(p, depth + 1)).collect();
                format!("fn[{}]", params.join(", "))
            }
            TyNode::Open | TyNode::Error | TyNode::Same(_) => "_".into(),
        }
    }
}
