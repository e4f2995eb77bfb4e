// The options of all strategies. Each strategy has its own struct, found by its type.
//
//   artel::StrategyOptions options = {artel::LocalStepsOptions{.local_steps = 8}};
//   options.of<artel::PackingOptions>().compress = "int8";
//
// Built-in options are in train/strategies/options.h.
#pragma once

#include <any>
#include <functional>
#include <map>
#include <typeindex>

#include "artel/base/keys.h"

namespace artel {

class StrategyOptions {
 public:
  StrategyOptions() = default;
  template <typename... T>
  requires(sizeof...(T) > 0 && (!std::is_same_v<T, StrategyOptions> && ...))
      StrategyOptions(T... options) {
    ((of<T>() = std::move(options)), ...);
  }

  // The options of this type; defaults unless set.
  template <typename T>
  T& of() {
    std::any& found = options_[typeid(T)];
    if (!found.has_value()) found = T();
    return std::any_cast<T&>(found);
  }
  template <typename T>
  const T& of() const {
    static const T defaults;
    const auto found = options_.find(typeid(T));
    return found == options_.end() ? defaults : std::any_cast<const T&>(found->second);
  }

 private:
  std::map<std::type_index, std::any> options_;
};

// Calls a visitor with each key of some options.
using VisitKeys = std::function<void(StrategyOptions&, KeyVisitor&)>;

// Visits the keys that these structs list in `void visit(KeyVisitor&)`.
template <typename... T>
VisitKeys keys_of() {
  return [](StrategyOptions& options, KeyVisitor& field) { (options.of<T>().visit(field), ...); };
}

}  // namespace artel
