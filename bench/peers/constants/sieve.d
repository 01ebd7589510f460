int sieve() {
    bool[SIZE] composite;
    int count = 0;
    for (int i = 2; i < SIZE; i++)
        if (!composite[i]) {
            count++;
            for (int j = i + i; j < SIZE; j += i) composite[j] = true;
        }
    return count;
}
enum int result = sieve();
int main() { return result & 127; }
