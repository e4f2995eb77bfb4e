// Shows the progress of a run: one live line in a terminal, plain lines in a pipe or a log file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "artel/base/time.h"

namespace artel::observe {

// The state of a run after a step. Steps count from 1 over all epochs.
struct Status {
  int64_t epoch = 1, epochs = 1;
  int64_t step = 0, steps = 0;  // current and last step
  int64_t samples = 0;          // processed since the run began
  int64_t tokens = 0;           // per sample of text; 0 for other data
  double loss = 0;
  std::string metric_name;  // such as "accuracy"; empty without a metric
  double metric = 0;
  double forecast_seconds = 0;        // of a step; 0 if unknown
  int64_t ended_epochs = 0;           // since training began
  double seconds_between_epochs = 0;  // of all ends of epochs: tests and checkpoints
};

// Rates and the time left are computed from recent updates, not from the whole run, so a slow start
// or a resumed run does not distort them.
struct Pace {
  double samples_per_second = 0;
  double seconds_left = 0;
  double seconds_per_step = 0;  // without the time between epochs
};

// The work that is left.
struct Remaining {
  int64_t steps = 0, epochs = 0;    // `epochs` includes the current one
  double seconds_per_step = 0;      // measured; 0 before the second step
  double forecast_seconds = 0;      // of a step; 0 if unknown
  double seconds_of_epoch_end = 0;  // of tests and checkpoints after an epoch; 0 before the first
};
// The time of the remaining steps and ends of epochs. Uses the forecast pace until the measured one
// is known. 0 if neither is known.
double seconds_left(const Remaining& remaining);

// "30.5 ms a step (forecast 28.1 ms)". Empty without a forecast or a pace.
std::string forecast_text(double seconds_per_step, double forecast_seconds);

// "9,120", "12.3", or "0.0162": a rate with at least three significant digits.
std::string rate_text(double per_second);

// "epoch 2/10  step 312/938  loss 0.2841  accuracy 0.9132  9,120 samples/s  1 min 05 s left"
std::string plain_line(const Status& status, const Pace& pace);

// Like plain_line, with a progress bar. Truncated to `width` columns. Uses ASCII if `unicode` is
// false.
std::string live_line(const Status& status, const Pace& pace, int width, bool unicode);

struct ProgressOptions {
  std::FILE* stream = stderr;
  // Empty: determined from the stream.
  std::optional<bool> terminal;
  std::optional<int> width;
  // Time between plain lines. A live line is redrawn ten times a second.
  double interval_seconds = 10;
  std::function<Clock::time_point()> now = [] { return Clock::now(); };
};

// Not thread safe: updates come from the thread that runs the steps.
class Progress {
 public:
  explicit Progress(ProgressOptions options = {});
  ~Progress();  // ends the live line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap if no line is due. Always writes the first and the last step.
  void update(const Status& status);

  // Reports progress of work between steps: "testing  12,800 of 50,000".
  void work(std::string_view what, int64_t done, int64_t total);
  // Like `work`, for a known share from 0 to 1.
  void share(std::string_view what, double done);

  // Writes a separate line above the live line.
  void note(std::string_view text);

  // Removes the live line; later updates start a new one.
  void clear();

  Pace pace() const;

 private:
  struct Sample {
    Clock::time_point at;
    int64_t step, samples;
    double seconds_between_epochs;
  };

  ProgressOptions options_;
  bool terminal_, unicode_;
  std::deque<Sample> recent_;
  std::optional<Clock::time_point> last_written_;
  bool is_due();
  void write(const std::string& line);

  Status status_;
  bool live_ = false;  // a live line is on the screen
};

}  // namespace artel::observe
