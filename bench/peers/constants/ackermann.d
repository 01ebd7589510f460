struct Count { int v, c; }
Count ack(int m, int n, int c) {
    if (m == 0) return Count(n + 1, c + 1);
    if (n == 0) return ack(m - 1, 1, c + 1);
    Count r = ack(m, n - 1, c + 1);
    return ack(m - 1, r.v, r.c);
}
enum Count result = ack(3, SIZE, 0);
int main() { return (result.v + result.c) & 127; }
