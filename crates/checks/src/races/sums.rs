//! Addresses as sums. Separate from the comparison of accesses, since it is plain arithmetic, with unit tests.

use nyala_flat::Value;

/// Limit on the operations from which one address is computed.
pub const MAX_TERMS: usize = 64;

/// `number * iteration + bytes`, and multiples of values that do not vary.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sum {
    pub iteration: i64,
    pub bytes: i64,
    pub others: Vec<(Value, i64)>,
}

impl Sum {
    pub fn add(mut self, other: &Sum, factor: i64) -> Option<Sum> {
        self.iteration = self.iteration.checked_add(other.iteration.checked_mul(factor)?)?;
        self.bytes = self.bytes.checked_add(other.bytes.checked_mul(factor)?)?;
        for &(v, n) in &other.others {
            let n = n.checked_mul(factor)?;
            match self.others.iter_mut().find(|(known, _)| *known == v) {
                Some((_, known)) => *known = known.checked_add(n)?,
                None => self.others.push((v, n)),
            }
        }
        self.others.retain(|&(_, n)| n != 0);
        (self.others.len() < MAX_TERMS).then_some(self)
    }

    /// The number k, not 0, such that `other` in iteration i + k is the address that this sum is in iteration i. `None` if there is none.
    pub fn distance(&self, other: &Sum) -> Option<i64> {
        let difference = self.clone().add(other, -1)?;
        let is_fixed = difference.iteration == 0 && difference.others.is_empty();
        let k = difference.bytes.checked_div(self.iteration)?;
        (is_fixed && k != 0 && k.checked_mul(self.iteration) == Some(difference.bytes)).then_some(k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let sum = |iteration, bytes| Sum { iteration, bytes, others: vec![(Value(7), 1)] };
        assert_eq!(sum(4, 0).distance(&sum(4, -4)), Some(1));
        assert_eq!(sum(4, 0).distance(&sum(4, 8)), Some(-2));
        assert_eq!(sum(4, 0).distance(&sum(4, 0)), None);
        assert_eq!(sum(8, 0).distance(&sum(8, 4)), None);
        assert_eq!(sum(0, 0).distance(&sum(0, 4)), None);
        assert_eq!(sum(4, 0).distance(&sum(8, 4)), None);
        assert_eq!(sum(4, 0).distance(&Sum { others: vec![(Value(8), 1)], ..sum(4, 4) }), None);
    }
}
