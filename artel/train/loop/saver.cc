#include "artel/train/loop/saver.h"

#include <algorithm>
#include <cmath>

#include "artel/base/disk.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/parts/divided_state.h"

namespace artel {
namespace {

// Rejects weights that are not finite, or whose squares are not: they must never replace good ones.
// Checked on their way to the file.
void check_weights(const Parameters& parameters, std::vector<TensorSource>& weights) {
  for (TensorSource& weight : weights)
    weight.give = [give = weight.give, entry = parameters.entry(weight.name)](const auto& write) {
      give([&](std::span<const std::byte> piece) {
        const std::span values(reinterpret_cast<const float*>(piece.data()),
                               piece.size() / sizeof(float));
        for (const float value : values)
          require(std::isfinite(entry.is_state ? value : value * value), ErrorKind::numeric,
                  "parameter '{}' has grown to {}; try a lower learning rate", entry.name,
                  std::isnan(value) ? std::fabs(value) : value);
        write(piece);
      });
    };
}

// False if servers hold the state and part of the next step is already in it.
bool has_state(Strategy& strategy) {
  const ServedFacet* const served = strategy.served();
  return !served || served->has_state();
}

}  // namespace

Saver::Saver(TrainerState& state, const FitOptions& options, const FitResult& result)
    : s_(state),
      options_(options),
      result_(result),
      folder_(options.checkpoints),
      identity_(options.identity) {}

void Saver::choose_copies(comm::Group& group, bool divided) {
  const std::string mark =
      broadcast_text(group, fmt::format("{}.{:x}", s_.cluster.membership().generation,
                                        Clock::now().time_since_epoch().count()));
  const std::filesystem::path file = folder_.parent_path() / (".machine-" + mark);
  const bool saves = !folder_.empty();
  if (group.rank() == 0 && saves) write_file_atomically(file, "");
  group.barrier({.label = "copies"});
  const std::vector<int> machines = group.host_numbers();
  const int own = machines[group.rank()];
  const bool first = std::ranges::find(machines, own) - machines.begin() == group.rank();
  keeps_copy_ = saves && s_.cluster.servers() == 0 && group.rank() > 0 && first &&
                own < options_.checkpoint_copies && !std::filesystem::exists(file);
  if (keeps_copy_ && options_.before_copying)
    keeps_copy_ = options_.before_copying(folder_, identity_);
  group.barrier({.label = "copies"});
  if (saves && divided) copies_ = std::make_unique<CheckpointCopies>(group, keeps_copy_);
  if (group.rank() == 0 && saves) std::filesystem::remove(file);
}

void Saver::end_copies() {
  finish_copying();
  copies_.reset();
}

bool Saver::writes(Strategy& strategy, bool best) const {
  return !folder_.empty() && s_.cluster.rank() == 0 && (saved_step_ != s_.step || best) &&
         has_state(strategy);
}

void Saver::begin(Strategy& strategy, bool best) {
  if (best) best_step_ = s_.step;
  if (folder_.empty()) return;
  DividedStateTransfer* const divided = state_transfer_of(strategy);
  if (s_.cluster.rank() != 0) {
    if (divided) saving_ = std::async(std::launch::async, [divided] { divided->serve(); });
    if (keeps_copy_) copy(strategy, best);
  } else if (writes(strategy, best) && prepare(strategy)) {
    saving_ = std::async(std::launch::async, [this, best, divided, snapshot = s_.snapshot()] {
      try {
        send_copies(write(snapshot, best, divided));
      } catch (...) {
        send_copies({});
        throw;
      }
    });
  } else if (divided) {
    divided->release();
    send_copies({});
  }
}

// Returns false if nothing can be written.
bool Saver::prepare(Strategy& strategy) {
  if (ServedFacet* const served = strategy.served()) served->fetch();
  error_.reset();
  try {
    if (options_.before_save) options_.before_save();
  } catch (const Error& error) {
    note_error(error);
    return false;
  }
  return true;
}

// Runs on a separate thread.
std::filesystem::path Saver::write(checkpoint::Snapshot snapshot, bool best,
                                   DividedStateTransfer* divided) const {
  const auto release = [](DividedStateTransfer* state) { state->release(); };
  const std::unique_ptr<DividedStateTransfer, decltype(release)> in_use(divided, release);
  if (divided) {
    divided->complete(snapshot.weights);
    divided->complete(snapshot.optimizer);
  }
  check_weights(s_.parameters, snapshot.weights);
  for (TensorSource& tensor : sources_of(options_.enclosing_weights))
    snapshot.weights.push_back(std::move(tensor));
  return checkpoint::save_checkpoint(folder_, snapshot,
                                     {.keep_last = options_.keep_last, .best = best});
}

// On worker 0. The state may change meanwhile, because files do not.
void Saver::send_copies(const std::filesystem::path& checkpoint) {
  if (copies_)
    copying_ = std::async(std::launch::async, [this, checkpoint] { copies_->send(checkpoint); });
}

// A failed copy causes a warning and does not end the run.
void Saver::copy(Strategy& strategy, bool best) {
  if (copies_) {
    copying_ = std::async(std::launch::async, [this, best] {
      copies_->receive(folder_, {.keep_last = options_.keep_last, .best = best});
    });
    return;
  }
  if ((saved_step_ == s_.step && !best) || !has_state(strategy)) return;
  saving_ = std::async(std::launch::async, [this, best, snapshot = s_.snapshot()] {
    try {
      write(snapshot, best, nullptr);
    } catch (const Error& error) {
      log(LogLevel::warning, "this copy of the checkpoint was not saved: {}", error.what());
    }
  });
}

void Saver::finish() {
  if (!saving_.valid()) return;
  try {
    saving_.get();
    saved_step_ = s_.step;
  } catch (const Error& error) {
    note_error(error);
  }
}

void Saver::finish_copying() {
  if (!copying_.valid()) return;
  try {
    copying_.get();
  } catch (const Error& error) {
    log(LogLevel::warning, "a copy of a checkpoint was not completed: {}", error.what());
  }
}

void Saver::check() const {
  if (error_)
    fail(error_->kind(), "[step {}] the last checkpoint was not saved: {}", s_.step,
         error_->what());
}

// Records and logs a non-fatal error. Call in its catch block.
void Saver::note_error(const Error& error) {
  if (error.kind() == ErrorKind::io)
    error_.emplace(error.kind(), fmt::format("{} ({})", error.what(), free_space_at(folder_)));
  else if (error.kind() == ErrorKind::not_found || error.kind() == ErrorKind::numeric)
    error_ = error;
  else
    throw;
  if (result_.stopped_by.empty())
    log(LogLevel::warning, "step {} was not saved: {}; the next checkpoint will be tried", s_.step,
        error_->what());
}

}  // namespace artel
