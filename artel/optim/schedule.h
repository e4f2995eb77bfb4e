// Learning-rate schedules.
//
//   artel::Trainer cosine(cluster, model,
//                         {.schedule = {.shape = artel::optim::Cosine{}, .warmup = 5}});
//
// A Schedule is a pure function of the step, so a resumed run continues exactly. Its shape (step,
// cosine, ...) is multiplied by a linear warm-up and a batch-size scaling. Reduce on plateau, the
// only rule that depends on training results, is a separate factor with a small state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "artel/optim/options.h"

namespace artel::optim {

// Times below are in epochs, or in steps if the configuration's unit says so.
struct Constant {
  void visit(auto&&) {}
};

// Multiplied by `factor` every `every` epochs.
struct StepDecay {
  double every = 30;
  double factor = 0.1;

  void visit(auto&& field) {
    field("every", every);
    field("factor", factor);
  }
};

// Multiplied by `factor` at each of the milestones.
struct MultiStep {
  std::vector<double> milestones;
  double factor = 0.1;

  void visit(auto&& field) {
    field("milestones", milestones);
    field("factor", factor);
  }
};

// Half a cosine from the full rate, after the warm-up, down to `final_fraction` of it at the end.
struct Cosine {
  double final_fraction = 0;

  void visit(auto&& field) { field("final_fraction", final_fraction); }
};

// (1 - t)^power from the end of the warm-up to the end of training.
struct Polynomial {
  double power = 1;

  void visit(auto&& field) { field("power", power); }
};

// Up from rate / initial_divisor to the rate during the share `rise` of all steps, then down to
// rate / initial_divisor / final_divisor, both along half a cosine (Smith's super-convergence).
struct OneCycle {
  double rise = 0.3;
  double initial_divisor = 25;
  double final_divisor = 1e4;

  void visit(auto&& field) {
    field("rise", rise);
    field("initial_divisor", initial_divisor);
    field("final_divisor", final_divisor);
  }
};

// Multiplied by `factor` when the monitored metric has not improved for more than `patience`
// epochs. The metric is the validation loss, or with `maximize` the validation accuracy; without
// validation data, that of the training data. An improvement is a relative change of more than
// `threshold`. After a reduction, `cooldown` epochs are not counted. The product of the factors
// never falls below `floor`.
struct Plateau {
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  int64_t cooldown = 0;
  double floor = 0;
  bool maximize = false;  // monitors the accuracy instead of the loss

  void visit(auto&& field) {
    field("factor", factor);
    field("patience", patience);
    field("threshold", threshold);
    field("cooldown", cooldown);
    field("floor", floor);
    field("maximize", maximize);
  }
};

using ScheduleShape =
    std::variant<Constant, StepDecay, MultiStep, Cosine, Polynomial, OneCycle, Plateau>;

struct ScheduleConfig {
  ScheduleShape shape = Constant{};
  // Duration of a linear rise from the share `warmup_start` of the rate. 0 turns it off.
  double warmup = 0;
  double warmup_start = 0.1;
  std::string unit = "epoch";  // or "step"
  // Scaling of the rate with the global batch: "none", "linear" (rate * batch / reference_batch),
  // or "sqrt" (the square root of that factor).
  std::string scaling = "none";
  int64_t reference_batch = 256;

  // "constant", "step", "multi_step", "cosine", "polynomial", "one_cycle" or "plateau".
  std::string_view name() const;

  void visit(auto&& field) {
    std::visit([&](auto& settings) { settings.visit(field); }, shape);
    field("warmup", warmup);
    field("warmup_start", warmup_start);
    field("unit", unit);
    field("scaling", scaling);
    field("reference_batch", reference_batch);
  }
};

std::vector<std::string> schedule_names();

// From {"name", "cosine"}, {"warmup", "5"}, ...; throws the same Errors as optimizer_from_options.
ScheduleConfig schedule_from_options(const Options& options);
Options to_options(const ScheduleConfig& config);

// The length and batch size of a run.
struct Horizon {
  int64_t total_steps = 0;
  int64_t steps_per_epoch = 1;
  int64_t batch_size = 1;  // of all workers together
};

class Schedule {
 public:
  // Throws an Error for inconsistent settings.
  Schedule(ScheduleConfig config, double learning_rate, Horizon horizon);

  // The learning rate of step `step`, counted from 1. Steps past the end keep the last rate.
  double at(int64_t step) const;

 private:
  ScheduleConfig config_;
  double learning_rate_;  // scaled with the batch
  Horizon horizon_;
  double steps_per_unit_;
  double warmup_steps_;
};

// The state of reduce on plateau, for checkpoints.
struct PlateauState {
  bool started = false;
  double best = 0;
  int64_t bad_epochs = 0;
  int64_t cooldown_left = 0;
  double factor = 1;
};

// Reduce on plateau at run time: multiply the schedule's rate by `factor()`.
class PlateauReducer {
 public:
  explicit PlateauReducer(Plateau settings, PlateauState state = {})
      : settings_(settings), state_(state) {}

  // Takes the metric of the next epoch. Returns true if the factor was reduced.
  bool observe(double metric);

  double factor() const { return state_.factor; }
  const PlateauState& state() const { return state_; }

 private:
  Plateau settings_;
  PlateauState state_;
};

}  // namespace artel::optim
