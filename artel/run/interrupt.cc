#include "artel/run/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>

namespace artel {
namespace {

// A signal handler can only use globals.
std::atomic<Trainer*> stopped_trainer{nullptr};
std::atomic<int> received_signal{0};

std::atomic<int64_t> received_at{0};  // milliseconds

int64_t milliseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000} * now.tv_sec + now.tv_nsec / 1'000'000;
}

// A signal to a process group or container arrives from its sender and from the launcher. Job
// schedulers repeat SIGTERM before they kill, so only the first one counts. A second SIGINT ends
// the process if it comes after a while.
void on_signal(int signal) {
  constexpr int64_t kOnceMilliseconds = 500;
  const int before = received_signal;
  if (signal == SIGTERM && before != 0) return;
  if (before == SIGINT) {
    if (milliseconds_now() - received_at > kOnceMilliseconds) ::_exit(128 + signal);
    return;
  }
  received_signal = signal;
  received_at = milliseconds_now();
  constexpr std::string_view text = "\nstopping after this step; interrupt again to stop at once\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  Trainer* const trainer = stopped_trainer;
  if (!trainer) return;
  if (signal == SIGTERM)
    trainer->request_leave();
  else
    trainer->request_stop(signal);
}

// Must be set before the handler can be called.
auto handler_for(Trainer& trainer) {
  received_signal = 0;
  stopped_trainer = &trainer;
  return on_signal;
}

}  // namespace

HandleSignals::HandleSignals(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &previous_interrupt_);
  ::sigaction(SIGTERM, &action, &previous_terminate_);
}

HandleSignals::~HandleSignals() {
  ::sigaction(SIGINT, &previous_interrupt_, nullptr);
  ::sigaction(SIGTERM, &previous_terminate_, nullptr);
}

StopOnSignal::StopOnSignal(Trainer& trainer) : signals_(handler_for(trainer)) {}

StopOnSignal::~StopOnSignal() { stopped_trainer = nullptr; }

int StopOnSignal::received() { return received_signal; }

}  // namespace artel
