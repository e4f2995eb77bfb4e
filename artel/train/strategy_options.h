// The options of all strategies: each has a struct of its own, which is found by its type.
//
//   artel::StrategyOptions options = {artel::LocalStepsOptions{.local_steps = 8}};
//   options.of<artel::PackingOptions>().compress = "int8";
//
// Those that come with Artel are in train/strategies/options.h.
#pragma once

#include <any>
#include <map>
#include <typeindex>

namespace artel {

class StrategyOptions {
 public:
  StrategyOptions() = default;
  template <typename... T>
  requires(sizeof...(T) > 0 && (!std::is_same_v<T, StrategyOptions> && ...))
      StrategyOptions(T... options) {
    ((of<T>() = std::move(options)), ...);
  }

  // Defaults, unless they were set.
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

}  // namespace artel
