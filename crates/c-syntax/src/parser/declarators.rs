//! Declarators: names, and what their types add to the specifier.

use super::*;

/// Operators that a program may define for structs, with the names of their functions.
const OPERATORS: [(&str, &str); 28] = [
    ("+", "operator+"),
    ("-", "operator-"),
    ("*", "operator*"),
    ("/", "operator/"),
    ("%", "operator%"),
    ("&", "operator&"),
    ("|", "operator|"),
    ("^", "operator^"),
    ("~", "operator~"),
    ("!", "operator!"),
    ("<<", "operator<<"),
    (">>", "operator>>"),
    ("==", "operator=="),
    ("!=", "operator!="),
    ("<", "operator<"),
    ("<=", "operator<="),
    (">", "operator>"),
    (">=", "operator>="),
    ("+=", "operator+="),
    ("-=", "operator-="),
    ("*=", "operator*="),
    ("/=", "operator/="),
    ("%=", "operator%="),
    ("&=", "operator&="),
    ("|=", "operator|="),
    ("^=", "operator^="),
    ("<<=", "operator<<="),
    (">>=", "operator>>="),
];

/// More of them in ISPC's dialect.
const OPERATORS_OF_ISPC: [(&str, &str); 5] =
    [("++", "operator++"), ("--", "operator--"), ("=", "operator="), ("&&", "operator&&"), ("||", "operator||")];

impl<'s> Parser<'s> {
    /// With a name, or without one where a type stands alone.
    pub(super) fn declarator(&mut self, is_named: bool) -> Parsed<Declarator<'s>> {
        let start = self.span();
        let mut pointers = Vec::new();
        let mut rates = Rates::default();
        while self.eat("*") || self.is_staged() && self.empty_brackets() {
            let mut pointer = (false, None);
            rates = Rates::default();
            loop {
                if self.eat("const") {
                    pointer.0 = true;
                } else if self.is_ispc() && (self.is("varying") || self.is("uniform")) {
                    rates.is_bound = true;
                    if self.next().text == "varying" {
                        pointer.1 = Some(self.gang());
                    }
                } else if self.is_sierra() && self.eat("varying") {
                    pointer.1 = Some(self.length()?);
                } else if !["uniform", "restrict"].iter().any(|word| self.is_keyword(word) && self.eat(word)) {
                    break;
                }
            }
            pointers.push(pointer);
        }
        let is_reference = self.eat("&");
        let mut reference_lanes = None;
        if is_reference && !self.is_staged() && self.eat("varying") {
            reference_lanes = Some(Box::new(self.length()?));
        } else if is_reference && !self.is_staged() {
            self.eat("uniform");
        }
        if self.is("(") && self.ahead(1).text == "*" {
            self.pos += 1;
            let inner = self.nested(|p| p.declarator(is_named))?;
            self.expect(")")?;
            if inner.function.is_some() || inner.params.is_some() || inner.is_reference || is_reference {
                let hint = "give the inner type a name: `typedef int (*F)(int);`";
                return Err(Box::new(limitation::not_supported(inner.span, "such pointers to functions", hint)));
            }
            self.expect("(")?;
            let params = self.params()?;
            let function = Some(Box::new(FunctionPointer { pointers: inner.pointers, params }));
            let span = self.since(start);
            let (name, lengths, rates) = (inner.name, inner.lengths, inner.rates);
            return Ok(Declarator {
                pointers,
                is_reference,
                reference_lanes,
                name,
                function,
                lengths,
                rates,
                ..Declarator::at(span)
            });
        }
        if self.is_ispc() && self.is("(") && self.ahead(1).text == "&" && self.ahead(3).text == ")" {
            // `(&a)[n]`: a reference to an array.
            self.pos += 2;
            let name = Some(self.name("a name")?);
            self.expect(")")?;
            let lengths = self.lengths()?;
            let span = self.since(start);
            return Ok(Declarator { pointers, is_reference: true, name, lengths, rates, ..Declarator::at(span) });
        }
        let has_name = self.token().kind == Kind::Name && !self.is_keyword(self.token().text);
        let name = if self.is("operator") && self.is_keyword("operator") {
            Some(self.operator()?)
        } else if is_named || has_name {
            Some(self.name("a name")?)
        } else {
            None
        };
        let mut params = None;
        if name.is_some() && self.eat("(") {
            params = Some(self.params()?);
        }
        let lengths = self.lengths()?;
        let span = self.since(start);
        Ok(Declarator { pointers, is_reference, reference_lanes, name, params, lengths, rates, ..Declarator::at(span) })
    }

    /// `[n]`, from the left.
    fn lengths(&mut self) -> Parsed<Vec<Option<Expr<'s>>>> {
        let mut lengths = Vec::new();
        while self.eat("[") {
            lengths.push(if self.is("]") { None } else { Some(self.choice()?) });
            self.expect("]")?;
        }
        Ok(lengths)
    }

    /// `operator+` as a name.
    fn operator(&mut self) -> Parsed<Name<'s>> {
        let start = self.expect("operator")?;
        let sign = self.token();
        let more: &[(&str, &str)] = if self.is_ispc() { &OPERATORS_OF_ISPC } else { &[] };
        let known = OPERATORS.iter().chain(more).find(|o| sign.kind == Kind::Sign && o.0 == sign.text);
        let Some(&(_, name)) = known else {
            if sign.kind == Kind::Sign {
                let hint = "write a function";
                let what = format!("operators `{}` of one's own", sign.text);
                return Err(Box::new(limitation::not_supported(self.since(start), &what, hint)));
            }
            return Err(self.unexpected("an operator"));
        };
        self.pos += 1;
        Ok(Name { text: name, span: self.since(start) })
    }

    /// Whether a declaration begins here: `float(n)` is a value, `float (*f)(int)` is none.
    pub(super) fn begins_declaration(&self) -> bool {
        self.begins_type(self.token()) && (self.ahead(1).text != "(" || self.ahead(2).text == "*")
    }

    pub(super) fn params(&mut self) -> Parsed<Vec<(Specifier<'s>, Declarator<'s>)>> {
        let mut params = Vec::new();
        if self.is("void") && self.ahead(1).text == ")" {
            self.pos += 1;
        }
        while !self.is(")") {
            if self.is("...") {
                let hint = "declare a function for each number of arguments";
                return Err(Box::new(limitation::not_supported(self.span(), "parameters `...`", hint)));
            }
            let (_, specifier) = self.specifiers()?;
            let mut declarator = self.declarator(false)?;
            self.rate(&specifier, false, &mut declarator);
            if self.is_ispc() && self.eat("=") {
                declarator.default = Some(self.assignment()?.into());
            }
            params.push((specifier, declarator));
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(params)
    }

    pub(super) fn type_name(&mut self) -> Parsed<TypeName<'s>> {
        self.type_of(true)
    }

    /// A type alone, which may leave it open whether it has lanes.
    pub(super) fn type_of(&mut self, is_open: bool) -> Parsed<TypeName<'s>> {
        let (_, specifier) = self.specifiers()?;
        let mut declarator = self.declarator(false)?;
        self.rate(&specifier, is_open, &mut declarator);
        Ok((specifier, declarator))
    }
}
