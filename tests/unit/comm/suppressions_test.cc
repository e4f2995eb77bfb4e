// Gloo is not built with the thread sanitizer, which therefore does not see its locks.
extern "C" const char* __tsan_default_suppressions() { return "race:libgloo.so\n"; }
