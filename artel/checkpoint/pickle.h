// An interpreter for the subset of Python's pickle language that describes plain data.
//
// It builds numbers, text, lists, tuples, and dictionaries, and passes everything else (global
// names, calls, persistent identifiers) to a `PickleHost`, which accepts known names. It never
// executes code. Memory is linear in the length of the input.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/tensor/shape.h"

namespace artel::checkpoint {

struct PickleValue;

struct PickleNone {};
struct PickleList {  // a list or a tuple
  std::vector<PickleValue*> items;
};
struct PickleDict {  // in the order of insertion
  std::vector<std::pair<PickleValue*, PickleValue*>> items;
};
struct PickleGlobal {  // "torch.FloatStorage"
  std::string name;
};
// PyTorch objects, created by the host.
struct PickleStorage {
  std::string type;  // the name of the storage's class, such as "FloatStorage"
  std::string key;
  int64_t elements = 0;
  int64_t offset = 0;  // of a view, in elements
};
struct PickleTensor {
  PickleStorage storage;
  int64_t offset = 0;
  Shape shape;
  std::vector<int64_t> strides;
};

// Kept small, because a file can create a value with one or two bytes. Storages and tensors, which
// take many bytes of a file, are allocated separately.
struct PickleValue {
  template <typename T>
  using Apart = std::unique_ptr<T>;

  PickleValue() = default;
  template <typename T>
  PickleValue(T value) : content(std::move(value)) {}
  PickleValue(PickleStorage value) : content(std::make_unique<PickleStorage>(std::move(value))) {}
  PickleValue(PickleTensor value) : content(std::make_unique<PickleTensor>(std::move(value))) {}

  std::variant<PickleNone, bool, int64_t, double, std::string, PickleList, PickleDict, PickleGlobal,
               Apart<PickleStorage>, Apart<PickleTensor>>
      content;

  template <typename T>
  const T* as() const {
    if constexpr (std::is_same_v<T, PickleStorage> || std::is_same_v<T, PickleTensor>) {
      const auto* const apart = std::get_if<Apart<T>>(&content);
      return apart ? apart->get() : nullptr;
    } else {
      return std::get_if<T>(&content);
    }
  }
  template <typename T>
  T* as() {
    return const_cast<T*>(std::as_const(*this).as<T>());
  }
};

// Owns the values of a file, which may refer to one another in cycles.
class PickleHeap {
 public:
  PickleValue* make(PickleValue value) { return &values_.emplace_back(std::move(value)); }

 private:
  std::deque<PickleValue> values_;
};

// Handles everything except plain data. Each function returns a new value or throws.
class PickleHost {
 public:
  virtual ~PickleHost() = default;
  virtual PickleValue global(const std::string& name, const ByteReader& where) = 0;
  virtual PickleValue* call(PickleValue* function, PickleValue* arguments, PickleHeap& heap,
                            const ByteReader& where) = 0;
  virtual PickleValue persistent(PickleValue* id, const ByteReader& where) = 0;
};

// Runs one pickle and leaves the reader after it. Throws an Error with the offset: of kind corrupt
// for a malformed pickle, of kind unsupported for an instruction outside the subset.
PickleValue* run_pickle(ByteReader& reader, PickleHost& host, PickleHeap& heap);

}  // namespace artel::checkpoint
