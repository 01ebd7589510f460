float root = sqrt(); //~ error[sierra-type]: found 0 arguments, expected 1
