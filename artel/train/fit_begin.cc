// What workers do before their first step: agree on what they are about to do, and begin with the
// weights and optimizer state of worker 0.
#include <fmt/format.h>

#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/train/fit_loop.h"

namespace artel {

// Restores what is to be resumed, and makes sure that all workers do the same thing.
void FitLoop::begin_together() {
  if (options_.resume && s_.cluster.rank() == 0) {
    if (const auto newest = checkpoint::load_newest(options_.checkpoints)) {
      for (const std::string& reason : newest->refused) log(LogLevel::warning, "{}", reason);
      s_.restore(newest->checkpoint);
    }
  }
  if (!s_.cluster.group()) return;
  comm::Group& group = *s_.cluster.group();
  if (s_.choices.tune) {
    // Timing decides on worker 0 only; all others get its choices.
    if (group.rank() == 0) compile(s_.stepper_for(loader_.layout()));
    s_.choices.tune = false;
  }
  s_.restore_state(broadcast_text(group, s_.state_text()));
  check_agreement(group, facts());
}

// For every size that a batch may have.
void FitLoop::compile(Stepper& stepper) const {
  stepper.buckets(options_.batch_size);
  const int64_t rest = loader_.sampler().samples_per_epoch() % options_.batch_size;
  if (rest > 0) stepper.buckets(rest);
}

Facts FitLoop::facts() const {
  const data::SampleLayout& layout = loader_.layout();
  Facts facts = {{"version", ARTEL_VERSION},
                 {"samples", std::to_string(loader_.set().size())},
                 {"sample", to_string(input_type(layout))},
                 {"classes", std::to_string(layout.classes)},
                 {"batch_size", std::to_string(options_.batch_size)},
                 {"keep_last_batch", options_.keep_last_batch ? "yes" : "no"},
                 {"epochs", std::to_string(options_.epochs)},
                 {"steps", std::to_string(options_.steps)},
                 {"seed", std::to_string(s_.options.seed)},
                 {"lanes", std::to_string(s_.lanes)},
                 {"loss", s_.options.loss},
                 {"label_smoothing", fmt::format("{}", s_.options.label_smoothing)},
                 {"freeze", fmt::format("{}", fmt::join(s_.options.freeze, ", "))},
                 {"strategy", s_.options.strategy},
                 {"reduction", s_.options.reduction},
                 {"coordinators", std::to_string(s_.options.coordinators)},
                 {"compress", s_.options.compress},
                 {"local_steps", std::to_string(s_.options.local_steps)},
                 {"outer_momentum", fmt::format("{}", s_.options.outer_momentum)},
                 {"servers", std::to_string(s_.cluster.servers())},
                 {"delay", s_.options.delay ? std::to_string(*s_.options.delay) : "none"},
                 {"push_every", std::to_string(s_.options.push_every)},
                 {"fetch_every", std::to_string(s_.options.fetch_every)},
                 {"synchronous_epochs", std::to_string(s_.options.synchronous_epochs)},
                 {"allow_lossy", s_.options.allow_lossy ? "yes" : "no"},
                 {"outer_lr", fmt::format("{}", s_.options.outer_learning_rate)},
                 {"save_every", std::to_string(options_.save_every)},
                 {"timeline", options_.timeline ? "yes" : "no"},
                 {"plan", std::to_string(hash_name(to_string(s_.choices)))}};
  for (const auto& [key, value] : optim::to_options(s_.options.optimizer))
    facts.emplace_back("optimizer." + key, value);
  for (const auto& [key, value] : optim::to_options(s_.options.schedule))
    facts.emplace_back("schedule." + key, value);
  for (const ParameterEntry& entry : s_.parameters.entries())
    facts.emplace_back("parameter " + entry.name, to_string(entry.shape));
  // The first and the last sample stand for the content of the data.
  for (const int64_t sample : {int64_t{0}, loader_.set().size() - 1}) {
    const data::SampleLayout& raw = loader_.set().layout();
    std::string bytes(raw.input_bytes() + raw.target_bytes(), '\0');
    const std::span<std::byte> all = std::as_writable_bytes(std::span(bytes));
    loader_.set().read(sample, all.first(raw.input_bytes()), all.subspan(raw.input_bytes()));
    facts.emplace_back(fmt::format("data sample {}", sample), std::to_string(hash_name(bytes)));
  }
  return facts;
}

// Weights and optimizer state of worker 0, which may have loaded them from a file.
void FitLoop::share_state(comm::Group& group) {
  group.broadcast(std::as_writable_bytes(s_.parameters.block()), 0, {.label = "parameters"});
  for (const std::span<float> block : stepper_->update().memory())
    group.broadcast(std::as_writable_bytes(block), 0, {.label = "optimizer"});
  group.broadcast(std::as_writable_bytes(s_.outer_velocity.block()), 0, {.label = "velocity"});
}

}  // namespace artel
