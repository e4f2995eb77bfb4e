#include "artel/train/strategies/registry.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/registry.h"
#include "artel/train/strategies/delayed_proximal.h"
#include "artel/train/strategies/downpour.h"
#include "artel/train/strategies/local_steps.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategies/parameter_server.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/synchronous.h"
#include "artel/train/strategy.h"

namespace artel {
namespace {

// The name by which a strategy is replaced: its first one, or the title of a strategy without
// names.
const std::string& key_of(const StrategyKind& kind) {
  return kind.names.empty() ? kind.title : kind.names.front();
}

// Global, because the names of strategies are part of the configuration language.
Registry<StrategyKind>& registered_strategies() {
  static Registry<StrategyKind> all("strategy", [] {
    Registry<StrategyKind>::Entries entries;
    for (StrategyKind& kind :
         std::vector{synchronous_kind(), local_steps_kind(), mesh_kind(), sharded_kind(),
                     parameter_server_kind(), downpour_kind(), ddpg_kind()})
      entries.emplace_back(std::string(key_of(kind)), std::move(kind));
    return entries;
  }());
  return all;
}

}  // namespace

void register_strategy(StrategyKind kind) {
  require_function("strategy", kind.title, kind.make);
  require(!kind.names.empty() || kind.wanted, ErrorKind::invalid_argument,
          "the strategy '{}' has neither names nor a condition to be wanted by", kind.title);
  std::string key = key_of(kind);
  for (const StrategyKind* other : strategy_kinds()) {
    if (key_of(*other) == key) continue;  // replaced, or refused by the registry
    require(other->title != kind.title, ErrorKind::invalid_argument,
            "the strategy '{}': its title is that of the strategy '{}'; try another one", key,
            key_of(*other));
    for (const std::string& name : kind.names)
      require(std::ranges::count(other->names, name) == 0, ErrorKind::invalid_argument,
              "the strategy '{}': got the name '{}', expected a word that is not taken", kind.title,
              name);
  }
  for (const std::string& name : kind.names)
    require(is_word(name), ErrorKind::invalid_argument,
            "the strategy '{}': got the name '{}', expected a word", kind.title, name);
  registered_strategies().add(std::move(key), std::move(kind));
}

std::vector<const StrategyKind*> strategy_kinds() { return registered_strategies().all(); }

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const StrategyKind* kind : strategy_kinds())
    names.insert(names.end(), kind->names.begin(), kind->names.end());
  return names;
}

const StrategyKind& find_strategy(const std::string& name) {
  for (const StrategyKind* kind : strategy_kinds())
    if (std::find(kind->names.begin(), kind->names.end(), name) != kind->names.end()) return *kind;
  const std::vector<std::string> names = strategy_names();
  fail(ErrorKind::invalid_argument, "cluster.strategy: got '{}'{}; known: {}", name,
       did_you_mean(name, names), join(names, ", "));
}

const StrategyKind& find_strategy(const std::string& name, int servers) {
  const StrategyKind& named = find_strategy(name);
  if (servers == 0 || named.needs_servers) return named;
  std::vector<std::string> others;
  for (const StrategyKind* kind : strategy_kinds()) {
    if (!kind->needs_servers) continue;
    if (name == "auto") return *kind;
    for (const std::string& other : kind->names) others.push_back(fmt::format("\"{}\"", other));
  }
  fail(ErrorKind::invalid_argument,
       "cluster.servers: got {} with the strategy \"{}\", expected one of {}", servers, name,
       join(others, ", "));
}

void visit_strategy_keys(StrategyOptions& options, KeyVisitor& field) {
  for (const StrategyKind* kind : strategy_kinds())
    if (kind->visit_keys) kind->visit_keys(options, field);
}

std::string strategy_notes(const std::string& key) {
  std::vector<std::string> notes;
  for (const StrategyKind* kind : strategy_kinds())
    if (const auto note = kind->notes.find(key); note != kind->notes.end())
      notes.push_back(note->second);
  return join(notes, " ");
}

std::vector<std::pair<std::string, std::string>> strategy_values(StrategyOptions options) {
  DescribeKeys describe;
  visit_strategy_keys(options, describe);
  std::vector<std::pair<std::string, std::string>> values;
  for (KeyDescription& key : describe.keys)
    values.emplace_back(std::move(key.name), std::move(key.default_value));
  return values;
}

std::vector<std::string> ignored_keys(StrategyOptions options,
                                      const std::vector<const StrategyKind*>& kinds,
                                      const std::string& name) {
  DescribeKeys heeded(name);
  for (const StrategyKind* kind : kinds)
    if (kind->visit_keys) kind->visit_keys(options, heeded);
  const auto defaults = strategy_values({});
  std::vector<std::string> ignored;
  for (const auto& value : strategy_values(options)) {
    const bool is_default = std::find(defaults.begin(), defaults.end(), value) != defaults.end();
    const bool is_heeded = std::any_of(heeded.keys.begin(), heeded.keys.end(),
                                       [&](const auto& key) { return key.name == value.first; });
    if (!is_default && !is_heeded) ignored.push_back(value.first);
  }
  return ignored;
}

const StrategyKind& strategy_at_work(const Situation& situation) {
  const int servers = situation.cluster.servers();
  const std::string& name = situation.options.strategy;
  const StrategyKind* kind = &find_strategy(name, servers);
  require(kind->needs_servers == (servers > 0), ErrorKind::invalid_argument,
          "cluster.strategy: got \"{}\", which needs parameter servers, but there are none", name);
  for (const StrategyKind* other : strategy_kinds()) {
    if (other->check) other->check(situation);
    if (other->wanted && other->wanted(situation)) kind = other;
  }
  return *kind;
}

bool divides_state(const Situation& situation) {
  const StrategyKind& kind = strategy_at_work(situation);
  return situation.cluster.size() > 1 && kind.needs_all_workers &&
         kind.needs_all_workers(situation.options.strategy_options);
}

namespace {

// Warns of settings that have no effect on this run.
void warn_of_unused(const FitView& fit, const StrategyKind& kind,
                    const std::vector<const StrategyKind*>& at_work, const ExchangePath& path) {
  const std::string& name = kind.names.empty() ? kind.title : fit.options.strategy;
  // Settings that a path replaces are named with the setting that replaces them.
  const std::vector<std::string> replaced = replaced_settings(fit.options, path);
  for (const std::string& line : replaced) log(LogLevel::warning, "{}", line);
  for (const std::string& key :
       ignored_keys(fit.options.strategy_options, at_work, fit.options.strategy))
    if (std::ranges::none_of(replaced, [&](const auto& line) { return line.starts_with(key); }))
      log(LogLevel::warning, "{} has no effect with the strategy \"{}\" on {}", key, name,
          counted(fit.cluster.size(), "worker"));
}

}  // namespace

std::unique_ptr<Strategy> make_strategy(const FitView& fit) {
  const Situation situation = {fit.cluster, fit.options, fit.kept};
  const StrategyKind& kind = strategy_at_work(situation);
  std::vector<const StrategyKind*> at_work = {&kind};
  for (const StrategyKind* other : strategy_kinds())
    if (other->may_follow && other->may_follow(situation)) at_work.push_back(other);
  std::unique_ptr<Strategy> strategy = kind.make(fit);
  if (fit.cluster.rank() == 0) warn_of_unused(fit, kind, at_work, strategy->path());
  return strategy;
}

}  // namespace artel
