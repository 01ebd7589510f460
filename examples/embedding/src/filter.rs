//! Tables of numbers, and filters of their rows: an expression becomes a program, and the program a function.

use nyala_embed::{Compiler, Function, In, Out};

/// Columns of numbers.
pub struct Table {
    /// The names of the columns.
    pub names: Vec<String>,
    /// All numbers of the first column, then those of the next ones.
    pub numbers: Vec<f64>,
    /// The number of rows.
    pub rows: usize,
}

impl Table {
    /// Reads a CSV file: a line with names, then lines with as many numbers.
    pub fn parse(text: &str) -> Result<Table, String> {
        let mut lines = text.lines();
        let names: Vec<String> = lines.next().unwrap_or("").split(',').map(|name| name.trim().to_string()).collect();
        let mut columns = vec![Vec::new(); names.len()];
        let mut rows = 0;
        for (i, line) in lines.enumerate() {
            let cells: Vec<&str> = line.split(',').collect();
            if cells.len() != names.len() {
                return Err(format!("line {} has {} cells, not {}\n", i + 2, cells.len(), names.len()));
            }
            for (cell, column) in cells.iter().zip(&mut columns) {
                let number = cell.trim().parse().map_err(|_| format!("line {}: `{cell}` is no number\n", i + 2))?;
                column.push(number);
            }
            rows += 1;
        }
        Ok(Table { names, numbers: columns.concat(), rows })
    }
}

/// A compiled filter for tables with certain columns.
pub struct Filter {
    columns: usize,
    select: Function<(In<f64>, i64, Out<u8>), ()>,
}

/// Words of Impala that an expression may have besides the names of columns.
const WORDS: [&str; 6] = ["abs", "floor", "max", "min", "sqrt", "true"];

/// Whether the text is an expression without calls of anything but [`WORDS`]: it comes from a user.
fn check_words(expression: &str, names: &[String]) -> Result<(), String> {
    if let Some(c) = expression.chars().find(|c| !c.is_ascii_alphanumeric() && !" ._+-*/%<>=!&|(),".contains(*c)) {
        return Err(format!("`{c}` cannot stand in a filter\n"));
    }
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(|c| !is_of_word(c)).filter(|w| w.starts_with(|c: char| !c.is_ascii_digit()));
    match words.into_iter().find(|w| !WORDS.contains(w) && !names.iter().any(|name| name == w)) {
        Some(word) => Err(format!("no column is named `{word}`; there are: {}\n", names.join(", "))),
        None => Ok(()),
    }
}

impl Filter {
    /// Compiles an expression of Impala, with the names of columns as numbers.
    pub fn compile(expression: &str, names: &[String]) -> Result<Filter, String> {
        let is_name = |name: &&String| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        check_words(expression, names)?;
        let columns: String = names
            .iter()
            .enumerate()
            .filter(|(_, name)| is_name(name))
            .map(|(i, name)| format!("        let {name} = columns({i}i64 * n + i);\n"))
            .collect();
        let text = format!(
            "extern fn select(columns: &[f64], n: i64, keep: &mut [u8]) -> () {{\n    for i in vec(8, 0i64, n) {{\n{columns}        \
             keep(i) = if {expression} {{ 1 }} else {{ 0 }};\n    }}\n}}\n"
        );
        // A column that the expression does not use is no fault of it.
        let program =
            Compiler::new().allow("unused-name").compile_source("filter", &text).map_err(|e| e.to_string())?;
        // SAFETY: `select` reads n numbers of each column and writes n bytes, which `select_into` provides; the expression can
        // only compute with numbers.
        let select = unsafe { program.function("select") }.map_err(|e| e.to_string())?;
        Ok(Filter { columns: names.len(), select })
    }

    /// For each row 1 if the expression holds, else 0.
    pub fn select(&self, table: &Table) -> Vec<u8> {
        let mut keep = vec![0; table.rows];
        self.select_into(table, &mut keep);
        keep
    }

    /// [`Filter::select`] into memory of the caller. Panics if that has not one byte for each row, or the table other columns.
    pub fn select_into(&self, table: &Table, keep: &mut [u8]) {
        assert!(table.names.len() == self.columns && table.numbers.len() == self.columns * table.rows);
        assert!(keep.len() == table.rows);
        self.select.call((&table.numbers, table.rows as i64, keep));
    }
}
