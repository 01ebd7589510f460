//! Formats of structs in the buffer protocol (PEP 3118): `T{f:x:4xd:y:}` as the numbers in it, with their places. Separate from the
//! comparison with Impala's types, which needs nothing but these.

/// A number in a struct.
#[derive(Debug, PartialEq)]
pub struct Number {
    /// Where it is, in bytes.
    pub offset: usize,
    /// The name of its field, with those around it: `a.b`, `a[2]`.
    pub name: String,
    /// The order of bytes and the letter.
    pub letters: [u8; 2],
}

/// More than the elements of arrays have. It bounds the work of reading a format.
pub const MAX_NUMBERS: usize = 1 << 16;
/// How deep structs may nest.
const MAX_DEPTH: usize = 64;

struct Reader<'f> {
    rest: &'f [u8],
    order: u8,
    /// Whether all is aligned, whatever the order of bytes.
    aligns: bool,
    numbers: Vec<Number>,
}

/// The numbers of a format whose items have so many bytes. `None` for what it does not know.
pub fn numbers(format: &[u8], size: usize) -> Option<Vec<Number>> {
    // `ctypes` leaves out the padding, though it states an order of bytes, with which there is none.
    [false, true].into_iter().find_map(|aligns| {
        let mut reader = Reader { rest: format, order: b'@', aligns, numbers: Vec::new() };
        let (own, _) = reader.items(0, false)?;
        (reader.rest.is_empty() && own == size).then_some(reader.numbers)
    })
}

/// Size and alignment of a letter in the machine's own layout.
fn native(letter: u8) -> Option<usize> {
    Some(match letter {
        b'?' | b'b' | b'B' => 1,
        b'h' | b'H' | b'e' => 2,
        b'i' | b'I' | b'f' => 4,
        b'l' | b'L' => size_of::<std::ffi::c_long>(),
        b'q' | b'Q' | b'd' | b'n' | b'N' => 8,
        _ => return None,
    })
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<usize> {
        let n = self.rest.iter().take_while(|c| c.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(n);
        self.rest = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// The lengths of `(2,3)`.
    fn lengths(&mut self) -> Option<Vec<usize>> {
        let mut lengths = Vec::new();
        if self.rest.first() == Some(&b'(') {
            self.next();
            loop {
                lengths.push(self.number()?);
                match self.next()? {
                    b',' => {}
                    b')' => break,
                    _ => return None,
                }
            }
        }
        Some(lengths)
    }

    fn name(&mut self) -> Option<String> {
        if self.rest.first() != Some(&b':') {
            return Some(String::new());
        }
        self.next();
        let n = self.rest.iter().position(|c| *c == b':')?;
        let name = String::from_utf8(self.rest[..n].to_vec()).ok()?;
        self.rest = &self.rest[n + 1..];
        Some(name)
    }

    /// Items up to the end or a brace: their size and alignment.
    fn items(&mut self, depth: usize, braced: bool) -> Option<(usize, usize)> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (mut offset, mut align) = (0usize, 1);
        loop {
            let Some(&first) = self.rest.first() else { return (!braced).then_some((offset, align)) };
            match first {
                b'}' if braced => {
                    self.next();
                    let size = if self.aligns { offset.checked_next_multiple_of(align)? } else { offset };
                    return Some((size, align));
                }
                b' ' => {
                    self.next();
                    continue;
                }
                b'@' | b'=' | b'<' | b'>' | b'!' | b'^' => {
                    self.order = first;
                    self.next();
                    continue;
                }
                _ => {}
            }
            let lengths = self.lengths()?;
            let repeat = if self.rest.first()?.is_ascii_digit() { self.number()? } else { 1 };
            let letter = self.next()?;
            if letter == b'x' {
                offset = offset.checked_add(repeat)?;
                self.name()?;
                continue;
            }
            let count = lengths.iter().try_fold(repeat, |n, m| n.checked_mul(*m))?;
            let (size, own_align, made) = if letter == b'T' {
                if self.next()? != b'{' {
                    return None;
                }
                let before = self.numbers.len();
                let (size, align) = self.items(depth + 1, true)?;
                (size, align, self.numbers.split_off(before))
            } else {
                let size = native(letter)?;
                let size = if self.order != b'@' && matches!(letter, b'l' | b'L') { 4 } else { size };
                // What `@` aligns, the others leave where it is.
                let order = if self.order == b'^' { b'=' } else { self.order };
                (size, size, vec![Number { offset: 0, name: String::new(), letters: [order, letter] }])
            };
            let own_align = if self.order == b'@' || self.aligns { own_align } else { 1 };
            offset = offset.checked_next_multiple_of(own_align)?;
            align = align.max(own_align);
            let name = self.name()?;
            if self.numbers.len().checked_add(count.checked_mul(made.len())?)? > MAX_NUMBERS {
                return None;
            }
            for i in 0..count {
                let index = if lengths.is_empty() && repeat == 1 { String::new() } else { format!("[{i}]") };
                let own = format!("{name}{index}");
                for part in &made {
                    let is_joined = own.is_empty() || part.name.is_empty() || part.name.starts_with('[');
                    let dot = if is_joined { "" } else { "." };
                    self.numbers.push(Number {
                        offset: offset.checked_add(part.offset)?,
                        name: format!("{own}{dot}{}", part.name),
                        letters: part.letters,
                    });
                }
                offset = offset.checked_add(size)?;
            }
        }
    }
}
