// bvh traversal style with uniform stack and packet masks, plus lane-wise stack
struct BNode { float lo, hi; int left, right; };
static int traverse(uniform const BNode nodes[], float x) {
    int stack[8]; int sp = 0; int hits = 0;
    stack[sp++] = 0;
    while (sp > 0) {
        int n = stack[--sp];
        if (x < nodes[n].lo || x > nodes[n].hi) continue;
        if (nodes[n].left < 0) { hits += -nodes[n].left; continue; }
        stack[sp++] = nodes[n].left; stack[sp++] = nodes[n].right;
    }
    return hits;
}
static int traverse_uniform(uniform const BNode nodes[], float x) {
    uniform int todo[8]; uniform int top = 0; uniform int at = 0; int hits = 0;
    while (true) {
        bool in = x >= nodes[at].lo && x <= nodes[at].hi;
        if (any(in)) {
            if (nodes[at].left < 0) { if (in) hits += -nodes[at].left; if (top == 0) break; at = todo[--top]; }
            else { todo[top++] = nodes[at].right; at = nodes[at].left; }
        } else { if (top == 0) break; at = todo[--top]; }
    }
    return hits;
}
export uniform bool test_bvh() {
    uniform BNode n[5] = { { 0, 10, 1, 2 }, { 0, 4, -1, 0 }, { 3, 10, 3, 4 }, { 3, 7, -10, 0 }, { 6, 10, -100, 0 } };
    float x = programIndex;
    int a = traverse(n, x), b = traverse_uniform(n, x);
    return all(a == b) && extract(a, 3) == 11 && extract(a, 0) == 1;
}
