// Tasks that run beside the function that launches them, and at once.
task void fill(uniform int a[], uniform int first, uniform int n, uniform int value);
task void add(uniform int * uniform sum, uniform int n) { atomic_add_global(sum, n); }
export uniform bool test_beside() {
    uniform int a[400], sum = 0;
    for (uniform int i = 0; i < 4; ++i) launch fill(a, 100 * i, 100, i);
    launch[10] add(&sum, 3);
    uniform int own = 0;
    for (uniform int i = 0; i < 100; ++i) own += i;
    sync;
    uniform bool fine = own == 4950 && sum == 30;
    for (uniform int i = 0; i < 400; ++i) fine = fine && a[i] == i / 100;
    // Two at a time, a second time.
    launch fill(a, 0, 200, 7);
    launch fill(a, 200, 200, 8);
    sync;
    sync;
    return fine && a[199] == 7 && a[200] == 8 && a[399] == 8;
}
task void fill(uniform int a[], uniform int first, uniform int n, uniform int value) {
    foreach (i = first ... first + n) a[i] = value;
}
// More than run beside each other.
export uniform bool test_many() {
    uniform int sum = 0;
    for (uniform int i = 0; i < 70; ++i) launch[2] add(&sum, i);
    sync;
    return sum == 4830;
}
// A function waits for its tasks at its end.
static void launching(uniform int * uniform sum) {
    launch add(sum, 1);
    if (*sum > 1000) return;
    launch[3, 2] add(sum, 2);
    launch[2, 2, 2] add(sum, 10);
}
export uniform bool test_end() {
    uniform int sum = 0;
    launching(&sum);
    uniform bool fine = sum == 93;
    sum = 5000;
    launching(&sum);
    return fine && sum >= 5001;
}
// Tasks launch tasks.
static void count_down(uniform int * uniform sum, uniform int n);
task void half(uniform int * uniform sum, uniform int n) {
    atomic_add_global(sum, 1);
    count_down(sum, n / 2);
}
static void count_down(uniform int * uniform sum, uniform int n) {
    if (n > 0) launch[2] half(sum, n);
}
export uniform bool test_within() {
    uniform int sum = 0;
    count_down(&sum, 4);
    return sum == 14;
}
