// Things known by name: those that come with Artel, and what a program adds to them.
//
// Thread safe. Entries live, and keep their address, until the program ends.
#pragma once

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel {

// Which names there may be: those of `words` stand in texts beside other words ("dense 10").
enum class Names { any, words };

// Letters, digits, '_', '-' and '.', at least one.
inline bool is_word(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

// Throws if what is to be registered under that name has no function to call.
inline void require_function(std::string_view kind, std::string_view name, const auto& function) {
  require(static_cast<bool>(function), ErrorKind::invalid_argument,
          "{} '{}': got no function, expected one", kind, name);
}

template <typename T>
class Registry {
 public:
  using Entries = std::vector<std::pair<std::string, T>>;

  // `kind` is what messages call an entry: "op", "loss".
  Registry(std::string_view kind, Entries entries, Names names = Names::any)
      : kind_(kind), allowed_(names) {
    for (auto& [name, entry] : entries) add(std::move(name), std::move(entry));
  }

  // Throws for a name that is taken or not allowed.
  void add(std::string name, T entry) {
    const std::lock_guard lock(mutex_);
    require(!name.empty() && !get(name), ErrorKind::invalid_argument,
            "{} '{}' {}; try another name", kind_, name,
            name.empty() ? "has no name" : "is registered already");
    require(allowed_ == Names::any || is_word(name), ErrorKind::invalid_argument,
            "{} '{}': expected a name of letters, digits, '_', '-' and '.'", kind_, name);
    entries_.emplace_back(std::move(name), std::move(entry));
  }

  // Null for an unknown name.
  const T* find(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    return get(name);
  }

  // Throws for an unknown name, with the nearest known one.
  const T& at(std::string_view name) const {
    if (const T* found = find(name)) return *found;
    fail(ErrorKind::not_found, "{}", unknown(name));
  }

  // What `at` says of a name that is not known.
  std::string unknown(std::string_view name) const {
    const std::vector<std::string> known = names();
    return fmt::format("unknown {} '{}'{}{}", kind_, name, did_you_mean(name, known),
                       known.size() <= kMostListed ? "; known: " + join(known, ", ") : "");
  }

  // In the order in which they were added.
  std::vector<const T*> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<const T*> all;
    for (const auto& [name, entry] : entries_) all.push_back(&entry);
    return all;
  }
  std::vector<std::string> names() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }

 private:
  static constexpr size_t kMostListed = 64;

  const T* get(std::string_view name) const {
    for (const auto& [known, entry] : entries_)
      if (known == name) return &entry;
    return nullptr;
  }

  std::string kind_;
  Names allowed_;
  mutable std::mutex mutex_;
  std::deque<std::pair<std::string, T>> entries_;
};

}  // namespace artel
