#include "artel/train/strategies/parameter_server.h"

#include "artel/train/strategies/served.h"
#include "artel/train/strategies/shared_options.h"

namespace artel {
namespace {

std::unique_ptr<Strategy> make_parameter_server(const FitView& fit) {
  const std::optional<int64_t> delay = fit.options_of<DelayOptions>().delay;
  auto remote = remote_parameters(fit, {.delay = delay});
  if (delay == 0) return std::make_unique<ServedTogether>(fit, std::move(remote));
  return std::make_unique<ServedApart>(fit, std::move(remote));
}

}  // namespace

StrategyKind parameter_server_kind() {
  return {.title = "Parameter servers",
          .help =
              "Servers sum the gradients and update the weights. Workers run in step, or "
              "independently within a limit.",
          .names = {"ps"},
          .needs_servers = true,
          .takes_batches = false,
          .visit_keys = keys_of<DelayOptions, PackingOptions, ReplicaOptions>(),
          .outlives_workers =
              [](const StrategyOptions& options) { return options.of<DelayOptions>().delay != 0; },
          .make = make_parameter_server};
}

}  // namespace artel
