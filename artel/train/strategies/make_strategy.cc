// Which strategy a fit has: one line for each.
#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/train/strategies/local_steps.h"
#include "artel/train/strategies/served.h"
#include "artel/train/strategies/synchronous.h"
#include "artel/train/trainer_state.h"

namespace artel {
namespace {

std::unique_ptr<RemoteParameters> remote_parameters(const Fit& fit, RemoteOptions remote) {
  TrainerState& s = fit.state;
  const TrainerOptions& options = s.options;
  require(options.local_steps == 1, ErrorKind::invalid_argument,
          "cluster.local_steps: got {} with parameter servers, expected 1", options.local_steps);
  s.own_states.clear();  // of another exchange
  if (s.step > 0 && !options.compress.empty() && s.cluster.rank() == 0)
    log(LogLevel::warning,
        "step {}: with parameter servers, compression goes on without what was lost before: not "
        "with the bits of a run that was never stopped",
        s.step);
  remote.servers = s.cluster.servers();
  remote.rule = optim::to_options(options.optimizer);
  remote.compress = options.compress;
  remote.seed = options.seed;
  return std::make_unique<RemoteParameters>(*s.cluster.world(), fit.stepper, fit.batch_size,
                                            remote);
}

std::unique_ptr<Strategy> parameter_server(const Fit& fit) {
  const std::optional<int64_t> delay = fit.state.options.delay;
  auto remote = remote_parameters(fit, {.delay = delay});
  if (delay == 0) return std::make_unique<ServedTogether>(fit, std::move(remote));
  return std::make_unique<ServedApart>(fit, std::move(remote));
}

std::unique_ptr<Strategy> downpour(const Fit& fit) {
  const TrainerOptions& options = fit.state.options;
  auto remote = remote_parameters(fit, {.delay = std::nullopt,
                                        .push_every = options.push_every,
                                        .fetch_every = options.fetch_every});
  const int64_t warm_up = options.synchronous_epochs * fit.steps_per_epoch;
  if (fit.state.step < warm_up)
    return std::make_unique<ServedTogether>(fit, std::move(remote), warm_up);
  return std::make_unique<ServedApart>(fit, std::move(remote));
}

std::unique_ptr<Strategy> local_steps(const Fit& fit) {
  const TrainerState& s = fit.state;
  if (s.economy.any()) return std::make_unique<LocalSteps>(fit, s.economy);
  return std::make_unique<LocalSteps>(fit, Economy{s.options.local_steps, s.options.compress});
}

struct Kind {
  bool (*wanted)(const TrainerState&);
  std::unique_ptr<Strategy> (*make)(const Fit&);
};

// The first that is wanted is taken.
constexpr Kind kKinds[] = {
    {[](const TrainerState& s) {
       return s.cluster.servers() > 0 && s.options.strategy == "downpour";
     },
     downpour},
    {[](const TrainerState& s) { return s.cluster.servers() > 0; }, parameter_server},
    {[](const TrainerState& s) {
       return s.cluster.group() && (s.economy.any() || s.options.local_steps > 1);
     },
     local_steps},
    {[](const TrainerState&) { return true; },
     [](const Fit& fit) -> std::unique_ptr<Strategy> {
       return std::make_unique<Synchronous>(fit);
     }}};

}  // namespace

std::unique_ptr<Strategy> make_strategy(const Fit& fit) {
  for (const Kind& kind : kKinds)
    if (kind.wanted(fit.state)) return kind.make(fit);
  return nullptr;
}

}  // namespace artel
