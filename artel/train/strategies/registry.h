// The registry of strategies and their descriptions.
//
//   struct PatientOptions {
//     int64_t rounds = 1;
//     void visit(artel::KeyVisitor& field) {
//       field({.name = "cluster.rounds", .help = "Rounds of an exchange.", .least = 1}, rounds);
//     }
//   };
//   artel::register_strategy({.title = "Patient",
//                             .help = "Like auto, in several rounds.",
//                             .names = {"patient"},
//                             .visit_keys = artel::keys_of<PatientOptions>(),
//                             .make = artel::find_strategy("auto").make});
//
// A built-in strategy is a file in train/strategies and a line in registry.cc; a custom one calls
// register_strategy. Configurations, their reference, `artel train --help`, and the agreement of
// workers then know it and its keys.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "artel/base/keys.h"
#include "artel/train/strategy_options.h"
#include "artel/train/strategy_state.h"

namespace artel {

class Cluster;
class Strategy;
class Workload;
struct FitView;
struct FitOptions;
struct TrainerOptions;
struct TrainerState;
namespace data {
class Dataset;
class Loader;
}  // namespace data

// The inputs for choosing a strategy.
struct Situation {
  const Cluster& cluster;
  const TrainerOptions& options;
  const StrategyStates& kept;  // their values; tensors may be elsewhere
};

struct StrategyKind {
  std::string title;
  std::string help;                // one sentence about the strategy
  std::vector<std::string> names;  // values of cluster.strategy
  bool needs_servers = false;
  // True if a caller may provide the batch of a step (Trainer::train_on_batch).
  bool takes_batches = true;
  // The samples must be sparse rows.
  bool sparse_data = false;
  std::string model = {};  // model of the zoo if the configuration names none
  // Its keys; see keys_of. Empty without options.
  VisitKeys visit_keys = {};
  // The meaning of other keys with this strategy: key and sentence.
  std::map<std::string, std::string> notes = {};
  // True if a run survives the death of a worker other than worker 0. Empty: never.
  std::function<bool(const StrategyOptions&)> outlives_workers = {};
  // True if some parts have only one owner, so that a run cannot continue without any one of the
  // workers. Empty: never.
  std::function<bool(const StrategyOptions&)> needs_all_workers = {};
  // True if the remaining workers can form another group and continue (Cluster::regroup).
  bool elastic = true;
  // Adjusts the options of a trainer that selects it by name. Empty for none.
  std::function<void(TrainerOptions&)> adjust = {};
  // Adjusts the options of a fit on these samples. Empty for none.
  std::function<void(FitOptions&, const data::Dataset&)> adjust_fit = {};
  // The workload of its steps (train/step/workload.h). Empty: batches, and the network compiled for
  // them.
  std::function<std::unique_ptr<Workload>(TrainerState&, data::Loader&, const FitOptions&)>
      workload = {};
  // Throws for incompatible options. Called for every strategy, whichever one is used.
  std::function<void(const Situation&)> check = {};
  // True if a worker, or in a mesh a copy of the network, can take part in a step without lanes.
  bool follows_without_lanes = false;
  // A strategy without names replaces a named one if this holds.
  std::function<bool(const Situation&)> wanted = {};
  // It may replace a named one during a fit if this holds; then its keys have an effect.
  std::function<bool(const Situation&)> may_follow = {};
  // Its names in comparisons (`artel compare`), such as "ring" or "local STEPS", and the settings
  // for them.
  std::vector<std::string> compared_as = {};
  std::function<std::vector<std::string>(const std::string& words)> compared_settings = {};
  // True if workers add up all lanes exactly in each step and announce newcomers with these sums.
  // Empty: never.
  std::function<bool(const TrainerOptions&)> adds_exactly = {};
  std::function<std::unique_ptr<Strategy>(const FitView&)> make = {};
};

// Any thread may call it. Replaces a strategy with the same first name (without names: the same
// title) that the program registered earlier. Throws if another strategy has one of the names or
// the title, or if a name is not a word.
void register_strategy(StrategyKind kind);

// In the order of the documentation. Their addresses do not change.
std::vector<const StrategyKind*> strategy_kinds();
std::vector<std::string> strategy_names();
// Throws for an unknown name, suggesting the nearest known one.
const StrategyKind& find_strategy(const std::string& name);
// The strategy of a run: with servers, "auto" means the first strategy that needs them. Throws for
// servers with a strategy that does not need any.
const StrategyKind& find_strategy(const std::string& name, int servers);

// The initial strategy of a fit. Throws for incompatible options.
const StrategyKind& strategy_at_work(const Situation& situation);

// True if each worker gets only a part of the weights or of the optimizer state.
bool divides_state(const Situation& situation);

// Visits the keys of all strategies. A key of several strategies is visited several times.
void visit_strategy_keys(StrategyOptions& options, KeyVisitor& field);

// The strategies' sentences about a key that is not their own.
std::string strategy_notes(const std::string& key);
// Each key of each strategy once, with its value as text.
std::vector<std::pair<std::string, std::string>> strategy_values(StrategyOptions options);
// Keys that were set and have no effect on any of these strategies under this name.
std::vector<std::string> ignored_keys(StrategyOptions options,
                                      const std::vector<const StrategyKind*>& kinds,
                                      const std::string& name);

}  // namespace artel
