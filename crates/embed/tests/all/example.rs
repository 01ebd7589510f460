//! The example of the pages about embedding: filters of tables.

#[path = "../../../../examples/embedding/src/filter.rs"]
mod filter;

use filter::{Filter, Table};

const TABLE: &str = "price,quantity,discount\n10.0,20,0.0\n1,1,0\n200,3,0.5\n99.5,2,0.05\n";

#[test]
fn rows_are_selected() -> Result<(), String> {
    let table = Table::parse(TABLE)?;
    let select = |expression: &str| Filter::compile(expression, &table.names).map(|filter| filter.select(&table));
    assert_eq!(select("price * quantity > 100.0 && discount < 0.1")?, [1, 0, 0, 1]);
    assert_eq!(select("max(price, 100.0) == 100.0")?, [1, 1, 0, 1]);
    assert_eq!(select("true")?, [1, 1, 1, 1]);
    let many = (0..1000).map(|i| format!("{i}\n")).collect::<String>();
    let table = Table::parse(&format!("x\n{many}"))?;
    let kept = Filter::compile("x >= 990.0", &table.names)?.select(&table);
    assert_eq!(kept.iter().map(|k| u32::from(*k)).sum::<u32>(), 10);
    let empty = Table::parse("x\n")?;
    assert!(Filter::compile("x > 0.0", &empty.names)?.select(&empty).is_empty());
    Ok(())
}

#[test]
fn wrong_expressions_are_told() -> Result<(), String> {
    let table = Table::parse(TABLE)?;
    let fault = |expression: &str| Filter::compile(expression, &table.names).err().unwrap_or_default();
    assert_eq!(fault("prise > 1.0"), "no column is named `prise`; there are: price, quantity, discount\n");
    assert_eq!(fault("{ exit(1) }"), "`{` cannot stand in a filter\n");
    assert!(fault("price > 1").contains("error[type-mismatch]"), "{}", fault("price > 1"));
    assert!(fault("price >").contains("error["), "{}", fault("price >"));
    assert_eq!(Table::parse("a,b\n1\n").err().as_deref(), Some("line 2 has 1 cells, not 2\n"));
    Ok(())
}
