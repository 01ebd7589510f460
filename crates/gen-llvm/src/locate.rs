//! Finds the function and the line of the source for a machine address, by the debug information of an object that the
//! JIT has linked.

use addr2line::Context;
use addr2line::gimli::{DwarfSections, EndianSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};

/// A place in the source. The line is 0 if unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub function: String,
    pub file: String,
    pub line: u32,
}

/// Size of an object's code, and one of its exported functions with its offset in the code.
pub(crate) fn code(object: &[u8]) -> Option<(u64, String, u64)> {
    let file = object::File::parse(object).ok()?;
    let text = file.section_by_name(".text")?;
    let anchor =
        file.symbols().find(|s| s.is_definition() && s.is_global() && s.section_index() == Some(text.index()))?;
    Some((text.size(), anchor.name().ok()?.to_string(), anchor.address() - text.address()))
}

/// The places of an object's code: an exported function, its offset in the code, the code's size, and the offsets from which on
/// code is of another place than before it.
pub struct Places {
    /// An exported function.
    pub anchor: String,
    /// Its offset in the code.
    pub anchor_offset: u64,
    /// The number of bytes of the code.
    pub size: u64,
    /// Offset and place, in order. Code before the first one is of no place.
    pub places: Vec<(u64, Place)>,
}

/// The places of an object's code, if it has debug information.
pub fn places(object: &[u8]) -> Option<Places> {
    let (size, anchor, anchor_offset) = code(object)?;
    let found = with_lines(object, |lines| {
        let mut places: Vec<(u64, Place)> = Vec::new();
        for (offset, _, _) in lines.find_location_range(0, size).ok()? {
            if let Some(place) = find_in(lines, offset)
                && places.last().is_none_or(|(_, last)| *last != place)
            {
                places.push((offset, place));
            }
        }
        Some(places)
    });
    Some(Places { anchor, anchor_offset, size, places: found? })
}

/// The source location of the instruction at `offset` of an object's code.
pub(crate) fn find(object: &[u8], offset: u64) -> Option<Place> {
    with_lines(object, |lines| find_in(lines, offset))
}

type Lines<'a> = Context<EndianSlice<'a, LittleEndian>>;

fn with_lines<T>(object: &[u8], f: impl FnOnce(&Lines) -> Option<T>) -> Option<T> {
    let file = object::File::parse(object).ok()?;
    let load = |id: SectionId| match file.section_by_name(id.name()) {
        Some(section) => relocated(&file, &section),
        None => Ok(Vec::new()),
    };
    let sections = DwarfSections::load(load).ok()?;
    f(&Context::from_dwarf(sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian))).ok()?)
}

fn find_in(context: &Lines, offset: u64) -> Option<Place> {
    let mut frames = context.find_frames(offset).skip_all_loads().ok()?;
    let mut best: Option<Place> = None;
    // From the innermost inlined function outward, up to one whose line is known.
    while let Ok(Some(frame)) = frames.next() {
        let Some(name) = frame.function.as_ref().and_then(|f| f.raw_name().ok().map(|n| n.into_owned())) else {
            continue;
        };
        let line = frame.location.as_ref().and_then(|l| l.line).unwrap_or(0);
        let known = frame.location.as_ref().and_then(|l| l.file).unwrap_or("").to_string();
        if best.is_none() || line != 0 {
            best = Some(Place { function: name, file: known, line });
        }
        if line != 0 {
            break;
        }
    }
    best
}

/// A section's bytes after relocation, with code at address 0.
fn relocated(file: &object::File, section: &object::Section) -> Result<Vec<u8>, object::Error> {
    let mut bytes = section.uncompressed_data()?.into_owned();
    for (offset, relocation) in section.relocations() {
        let target = match relocation.target() {
            RelocationTarget::Symbol(s) => file.symbol_by_index(s)?.address(),
            _ => 0,
        };
        let value = target.wrapping_add(relocation.addend() as u64).to_le_bytes();
        let size = usize::from(relocation.size()) / 8;
        if let Some(place) = bytes.get_mut(offset as usize..).and_then(|b| b.get_mut(..size.min(8))) {
            place.copy_from_slice(&value[..size.min(8)]);
        }
    }
    Ok(bytes)
}
