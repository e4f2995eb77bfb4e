#include "artel/train/strategies/downpour.h"

#include "artel/train/strategies/served.h"
#include "artel/train/strategies/shared_options.h"

namespace artel {
namespace {

std::unique_ptr<Strategy> make_downpour(const FitView& fit) {
  const auto& options = fit.options_of<DownpourOptions>();
  auto remote = remote_parameters(fit, {.delay = std::nullopt,
                                        .push_every = options.push_every,
                                        .fetch_every = options.fetch_every});
  const int64_t warm_up = options.synchronous_epochs * fit.steps_per_epoch;
  if (fit.step < warm_up) return std::make_unique<ServedTogether>(fit, std::move(remote), warm_up);
  return std::make_unique<ServedApart>(fit, std::move(remote));
}

// DistBelief trains with Adagrad unless another rule is selected.
void choose_adagrad(TrainerOptions& options) {
  const auto* sgd = std::get_if<optim::Sgd>(&options.optimizer.rule);
  if (sgd && sgd->momentum == 0)
    options.optimizer.rule = optim::Adagrad{.weight_decay = sgd->weight_decay};
}

}  // namespace

void DownpourOptions::visit(KeyVisitor& field) {
  field({.name = "cluster.push_every",
         .help = "With `downpour`: steps between pushes of a worker's gradients.",
         .least = 1},
        push_every);
  field({.name = "cluster.fetch_every",
         .help = "With `downpour`: steps between fetches of new weights.",
         .least = 1},
        fetch_every);
  field({"cluster.synchronous_epochs",
         "With `downpour`: initial epochs in which all workers run in step."},
        synchronous_epochs);
}

StrategyKind downpour_kind() {
  return {.title = "Downpour",
          .help =
              "Workers push gradients and fetch weights every few steps, without waiting for each "
              "other.",
          .names = {"downpour"},
          .needs_servers = true,
          .takes_batches = false,
          .visit_keys = keys_of<DownpourOptions, PackingOptions, ReplicaOptions>(),
          .outlives_workers = [](const StrategyOptions&) { return true; },
          .adjust = choose_adagrad,
          .make = make_downpour};
}

}  // namespace artel
