struct Count { int v, c; }
Count fib(int n, int c) {
    if (n < 2) return Count(n, c + 1);
    Count a = fib(n - 1, c + 1), b = fib(n - 2, a.c);
    return Count(a.v + b.v, b.c);
}
enum Count result = fib(SIZE, 0);
int main() { return (result.v + result.c) & 127; }
