// Named definitions: built-in ones, and those that a program registers.
//
// Thread safe. A definition exists at the same address until the program ends, even after another
// one has been registered under its name.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/mutex.h"
#include "artel/base/text.h"

namespace artel {

// Allowed names. `words` are names that appear in texts with other words ("dense 10").
enum class Names { any, words };

// True for a nonempty name of letters, digits, '_', '-', and '.'.
inline bool is_word(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

// Throws if `function` is empty.
inline void require_function(std::string_view kind, std::string_view name, const auto& function) {
  require(static_cast<bool>(function), ErrorKind::invalid_argument,
          "{} '{}': got no function, expected one", kind, name);
}

template <typename T>
class Registry {
 public:
  using Entries = std::vector<std::pair<std::string, T>>;

  // `kind` is the noun for an entry in messages: "op", "loss".
  Registry(std::string_view kind, Entries entries, Names names = Names::any)
      : kind_(kind), allowed_(names) {
    for (auto& [name, entry] : entries) {
      add(std::move(name), std::move(entry));
      const MutexLock lock(mutex_);
      entries_.back().builtin = true;
    }
  }

  // Adds a definition of the program. It takes the place of an earlier one of the program under the
  // same name: a notebook runs its cells more than once. Throws for a name that comes with Artel,
  // or that is not allowed.
  void add(std::string name, T definition) {
    const MutexLock lock(mutex_);
    require(!name.empty(), ErrorKind::invalid_argument, "{} '' has no name", kind_);
    require(allowed_ == Names::any || is_word(name), ErrorKind::invalid_argument,
            "{} '{}': expected a name of letters, digits, '_', '-' and '.'", kind_, name);
    if (Entry* const earlier = get(name)) {
      require(!earlier->builtin, ErrorKind::invalid_argument,
              "{} '{}' comes with Artel; try another name", kind_, name);
      earlier->replaced = true;
    }
    entries_.push_back({std::move(name), std::move(definition)});
  }

  // Returns null for an unknown name.
  const T* find(std::string_view name) const {
    const MutexLock lock(mutex_);
    const Entry* const found = get(name);
    return found ? &found->definition : nullptr;
  }

  // Throws for an unknown name and suggests the nearest known one.
  const T& at(std::string_view name) const {
    if (const T* found = find(name)) return *found;
    fail(ErrorKind::not_found, "{}", unknown(name));
  }

  // The message of `at` for an unknown name.
  std::string unknown(std::string_view name) const {
    const std::vector<std::string> known = names();
    return fmt::format("unknown {} '{}'{}{}", kind_, name, did_you_mean(name, known),
                       known.size() <= kMostListed ? "; known: " + join(known, ", ") : "");
  }

  // All entries, in the order of registration.
  std::vector<const T*> all() const {
    const MutexLock lock(mutex_);
    std::vector<const T*> all;
    for (const Entry& entry : entries_)
      if (!entry.replaced) all.push_back(&entry.definition);
    return all;
  }
  std::vector<std::string> names() const {
    const MutexLock lock(mutex_);
    std::vector<std::string> names;
    for (const Entry& entry : entries_)
      if (!entry.replaced) names.push_back(entry.name);
    return names;
  }

 private:
  static constexpr size_t kMostListed = 64;

  struct Entry {
    std::string name;
    T definition;
    bool builtin = false;
    bool replaced = false;  // by a later definition of the same name
  };

  Entry* get(std::string_view name) ARTEL_REQUIRES(mutex_) {
    for (Entry& entry : entries_)
      if (!entry.replaced && entry.name == name) return &entry;
    return nullptr;
  }
  const Entry* get(std::string_view name) const ARTEL_REQUIRES(mutex_) {
    for (const Entry& entry : entries_)
      if (!entry.replaced && entry.name == name) return &entry;
    return nullptr;
  }

  std::string kind_;
  Names allowed_;
  mutable Mutex mutex_;
  std::deque<Entry> entries_ ARTEL_GUARDED_BY(mutex_);
};

}  // namespace artel
