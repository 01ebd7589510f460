void f(uniform int n) {
    if (n > 2) goto nowhere; //~ error[sierra-name]: the function has no label `nowhere`
here:
    n--;
here: //~ error[sierra-name]: `here` is declared twice
    goto here;
}
