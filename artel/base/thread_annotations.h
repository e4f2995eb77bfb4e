// Thread-safety annotations, checked by clang (-Wthread-safety, in the preset `check`). They expand
// to nothing for other compilers.
//
//   struct Counter {
//     void add() ARTEL_EXCLUDES(mutex) {
//       const artel::MutexLock lock(mutex);
//       increase();
//     }
//     void increase() ARTEL_REQUIRES(mutex) { ++count; }
//     artel::Mutex mutex;
//     int count ARTEL_GUARDED_BY(mutex) = 0;
//   };
#pragma once

#if defined(__clang__)
#define ARTEL_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define ARTEL_THREAD_ANNOTATION(x)
#endif

#define ARTEL_CAPABILITY(name) ARTEL_THREAD_ANNOTATION(capability(name))
#define ARTEL_SCOPED_CAPABILITY ARTEL_THREAD_ANNOTATION(scoped_lockable)
// For members: only a thread that holds the mutex may read or write them.
#define ARTEL_GUARDED_BY(mutex) ARTEL_THREAD_ANNOTATION(guarded_by(mutex))
// For functions: the caller must hold the mutex, or must not hold it.
#define ARTEL_REQUIRES(mutex) ARTEL_THREAD_ANNOTATION(requires_capability(mutex))
#define ARTEL_EXCLUDES(mutex) ARTEL_THREAD_ANNOTATION(locks_excluded(mutex))
#define ARTEL_ACQUIRE(...) ARTEL_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define ARTEL_TRY_ACQUIRE(...) ARTEL_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define ARTEL_RELEASE(...) ARTEL_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
// Disables the check for a function that clang cannot verify. Explain in a comment why it is
// correct.
#define ARTEL_NOT_CHECKED ARTEL_THREAD_ANNOTATION(no_thread_safety_analysis)
