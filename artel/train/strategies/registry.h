// All strategies, and how each of them describes itself.
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
// A strategy is a file under train/strategies and a line in registry.cc, or, in a user's program, a
// call of register_strategy; after that, configurations, their reference, `artel train --help` and
// the agreement of workers know it and its keys.
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
struct Fit;
struct FitOptions;
struct TrainerOptions;
struct TrainerState;
namespace data {
class Dataset;
class Loader;
}  // namespace data

// What decides which strategy is at work.
struct Situation {
  const Cluster& cluster;
  const TrainerOptions& options;
  const StrategyStates& kept;  // the values of them; the tensors may be elsewhere
};

struct StrategyKind {
  std::string title;
  std::string help;                // what it does, in a sentence
  std::vector<std::string> names;  // values of cluster.strategy
  bool needs_servers = false;
  // Whether a caller may provide the batch of a step (Trainer::train_on_batch).
  bool takes_batches = true;
  // The samples have to be sparse rows.
  bool sparse_data = false;
  std::string model = {};  // of the zoo, if the configuration names none
  // Its keys: see keys_of. None: it has no options.
  std::function<void(StrategyOptions&, KeyVisitor&)> visit_keys = {};
  // What other keys mean with it, by their names: a sentence each.
  std::map<std::string, std::string> notes = {};
  // Whether a run goes on when a worker other than the first dies. None: never.
  std::function<bool(const StrategyOptions&)> outlives_workers = {};
  // Whether these options ask for parts that only one worker has, so that a run cannot go on
  // without any one of them. None: never.
  std::function<bool(const StrategyOptions&)> needs_all_workers = {};
  // Whether those who are left can form another group and go on (Cluster::regroup).
  bool elastic = true;
  // Adjusts the options of a trainer that asks for it by name. None: leaves them alone.
  std::function<void(TrainerOptions&)> adjust = {};
  // Adjusts the options of a fit on these samples. None: leaves them alone.
  std::function<void(FitOptions&, const data::Dataset&)> adjust_fit = {};
  // What its steps work on (train/workload.h). None: batches, and the network compiled for them.
  std::function<std::unique_ptr<Workload>(TrainerState&, data::Loader&, const FitOptions&)>
      workload = {};
  // Throws for options that do not go together, whichever strategy is at work.
  std::function<void(const Situation&)> check = {};
  // One without names takes the place of a named one when this holds,
  std::function<bool(const Situation&)> wanted = {};
  // and may do so in the course of a fit when this does: its keys have an effect, too.
  std::function<bool(const Situation&)> may_follow = {};
  // What comparisons (`artel compare`) call it, such as "ring" or "local STEPS", and the settings
  // that these words stand for.
  std::vector<std::string> compared_as = {};
  std::function<std::vector<std::string>(const std::string& words)> compared_settings = {};
  // Whether in each step workers add up the lanes of all exactly, and tell each other of newcomers
  // with these sums; so a worker can take part in a step without lanes. None: never.
  std::function<bool(const TrainerOptions&)> adds_exactly = {};
  std::function<std::unique_ptr<Strategy>(const Fit&)> make = {};
};

// The keys that some structs of options list in their `void visit(KeyVisitor&)`.
template <typename... T>
std::function<void(StrategyOptions&, KeyVisitor&)> keys_of() {
  return [](StrategyOptions& options, KeyVisitor& field) { (options.of<T>().visit(field), ...); };
}

// From any thread. Throws for a name that is taken, or that is not a word.
void register_strategy(StrategyKind kind);

// In the order in which people should read them. Their addresses do not change.
std::vector<const StrategyKind*> strategy_kinds();
std::vector<std::string> strategy_names();
// Throws for an unknown name, with the nearest known one.
const StrategyKind& find_strategy(const std::string& name);
// The strategy of a run: with servers, "auto" means the first strategy that needs them. Throws for
// servers with a strategy that does not need any.
const StrategyKind& find_strategy(const std::string& name, int servers);

// The strategy that a fit begins with. Throws for options that do not go together.
const StrategyKind& strategy_at_work(const Situation& situation);

// Whether it gives each worker only a part of the weights or of what the optimizer remembers.
bool divides_state(const Situation& situation);

// Visits the keys of all strategies; a key that several have, more than once.
void visit_strategy_keys(StrategyOptions& options, KeyVisitor& field);

// What strategies say about a key that is not theirs; one sentence after another.
std::string strategy_notes(const std::string& key);
// Each key of each strategy once, with its value as text.
std::vector<std::pair<std::string, std::string>> strategy_values(StrategyOptions options);
// Keys that were set and have no effect on any of these strategies under this name.
std::vector<std::string> ignored_keys(StrategyOptions options,
                                      const std::vector<const StrategyKind*>& kinds,
                                      const std::string& name);

}  // namespace artel
