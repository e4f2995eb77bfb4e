#include "artel/checkpoint/pickle.h"

#include <bit>
#include <charconv>
#include <unordered_map>

namespace artel::checkpoint {
namespace {

class Machine {
 public:
  Machine(ByteReader& reader, PickleHost& host, PickleHeap& heap)
      : reader_(reader), host_(host), heap_(heap) {}

  PickleValue* run() {
    for (;;) {
      const char code = static_cast<char>(reader_.little<uint8_t>());
      if (code == '.') return pop();
      if (!containers(code) && !numbers(code) && !texts(code) && !memory(code)) objects(code);
    }
  }

 private:
  void push(PickleValue value) { stack_.push_back(heap_.make(std::move(value))); }

  PickleValue* pop() {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    reader_.require(stack_.size() > floor, "a pickle pops more than it pushed");
    PickleValue* value = stack_.back();
    stack_.pop_back();
    return value;
  }

  PickleValue* top() {
    PickleValue* value = pop();
    stack_.push_back(value);
    return value;
  }

  // Pops everything above the last mark.
  std::vector<PickleValue*> pop_to_mark() {
    reader_.require(!marks_.empty(), "a pickle refers to a missing mark");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    marks_.pop_back();
    std::vector<PickleValue*> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    return items;
  }

  void push_tuple(size_t size) {
    PickleList tuple{std::vector<PickleValue*>(size)};
    for (size_t i = size; i-- > 0;) tuple.items[i] = pop();
    push({std::move(tuple)});
  }

  template <typename T>
  T& top_as(const char* kind) {
    T* container = top()->as<T>();
    reader_.require(container != nullptr, "a pickle adds to something that is not a {}", kind);
    return *container;
  }

  void set_items(const std::vector<PickleValue*>& items) {
    reader_.require(items.size() % 2 == 0, "a key without a value");
    PickleDict& dict = top_as<PickleDict>("dictionary");
    for (size_t i = 0; i < items.size(); i += 2) dict.items.emplace_back(items[i], items[i + 1]);
  }

  bool containers(char code) {
    switch (code) {
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return true;
      case ')':  // EMPTY_TUPLE
      case ']':  // EMPTY_LIST
        push({PickleList{}});
        return true;
      case '}':  // EMPTY_DICT
        push({PickleDict{}});
        return true;
      case 't':  // TUPLE
      case 'l':  // LIST
        push({PickleList{pop_to_mark()}});
        return true;
      case '\x85':  // TUPLE1
      case '\x86':  // TUPLE2
      case '\x87':  // TUPLE3
        push_tuple(static_cast<size_t>(code - '\x85') + 1);
        return true;
      case 'd': {  // DICT
        const auto items = pop_to_mark();
        push({PickleDict{}});
        set_items(items);
        return true;
      }
      case 'a': {  // APPEND
        PickleValue* item = pop();
        top_as<PickleList>("list").items.push_back(item);
        return true;
      }
      case 'e': {  // APPENDS
        const auto items = pop_to_mark();
        auto& list = top_as<PickleList>("list").items;
        list.insert(list.end(), items.begin(), items.end());
        return true;
      }
      case 's': {  // SETITEM
        PickleValue* value = pop();
        PickleValue* key = pop();
        set_items({key, value});
        return true;
      }
      case 'u':  // SETITEMS
        set_items(pop_to_mark());
        return true;
      case '0':  // POP
        pop();
        return true;
      case '1':  // POP_MARK
        pop_to_mark();
        return true;
      case '2':  // DUP
        stack_.push_back(top());
        return true;
    }
    return false;
  }

  bool numbers(char code) {
    switch (code) {
      case 'N':  // NONE
        push({PickleNone{}});
        return true;
      case '\x88':  // NEWTRUE
      case '\x89':  // NEWFALSE
        push({code == '\x88'});
        return true;
      case 'J':  // BININT
        push({int64_t{reader_.little<int32_t>()}});
        return true;
      case 'K':  // BININT1
        push({int64_t{reader_.little<uint8_t>()}});
        return true;
      case 'M':  // BININT2
        push({int64_t{reader_.little<uint16_t>()}});
        return true;
      case '\x8a':  // LONG1
        push_long(reader_.little<uint8_t>());
        return true;
      case '\x8b':  // LONG4
        push_long(reader_.little<uint32_t>());
        return true;
      case 'I':  // INT
      case 'L':  // LONG
        push_written_integer();
        return true;
      case 'G':  // BINFLOAT
        push({std::bit_cast<double>(reader_.big<uint64_t>())});
        return true;
      case 'F': {  // FLOAT
        const std::string_view text = reader_.take_line();
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        reader_.require(error == std::errc() && end == text.data() + text.size(), "not a number");
        push({value});
        return true;
      }
    }
    return false;
  }

  // A little-endian number in two's complement.
  void push_long(size_t size) {
    reader_.require(size <= sizeof(int64_t), "a whole number of {} bytes, expected at most 8",
                    size);
    const auto bytes = reader_.take(size);
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
    const int unused = 64 - 8 * static_cast<int>(size);
    if (unused < 64) value = static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
    push({static_cast<int64_t>(value)});
  }

  void push_written_integer() {
    std::string_view text = reader_.take_line();
    if (text == "00" || text == "01") return push({text == "01"});
    if (text.ends_with('L')) text.remove_suffix(1);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    reader_.require(error == std::errc() && end == text.data() + text.size(), "not a whole number");
    push({value});
  }

  bool texts(char code) {
    switch (code) {
      case 'X':  // BINUNICODE
      case 'T':  // BINSTRING
      case 'B':  // BINBYTES
        push({std::string(reader_.take_text(reader_.little<uint32_t>()))});
        return true;
      case '\x8c':  // SHORT_BINUNICODE
      case 'U':     // SHORT_BINSTRING
      case 'C':     // SHORT_BINBYTES
        push({std::string(reader_.take_text(reader_.little<uint8_t>()))});
        return true;
      case '\x8d':  // BINUNICODE8
      case '\x8e':  // BINBYTES8
        push({std::string(reader_.take_text(reader_.little<uint64_t>()))});
        return true;
      case 'V':  // UNICODE
        push({std::string(reader_.take_line())});
        return true;
    }
    return false;
  }

  void remember(uint64_t place) { memo_[place] = top(); }

  void recall(uint64_t place) {
    const auto found = memo_.find(place);
    reader_.require(found != memo_.end(), "a pickle recalls {}, which it never stored", place);
    stack_.push_back(found->second);
  }

  bool memory(char code) {
    switch (code) {
      case 'q':  // BINPUT
        remember(reader_.little<uint8_t>());
        return true;
      case 'r':  // LONG_BINPUT
        remember(reader_.little<uint32_t>());
        return true;
      case '\x94':  // MEMOIZE
        remember(memo_.size());
        return true;
      case 'h':  // BINGET
        recall(reader_.little<uint8_t>());
        return true;
      case 'j':  // LONG_BINGET
        recall(reader_.little<uint32_t>());
        return true;
      case '\x80': {  // PROTO
        const int version = reader_.little<uint8_t>();
        reader_.require(version <= 5, "pickle protocol {}, expected at most 5", version);
        return true;
      }
      case '\x95':  // FRAME
        reader_.take(8);
        return true;
    }
    return false;
  }

  void objects(char code) {
    switch (code) {
      case 'c': {  // GLOBAL
        const std::string module(reader_.take_line());
        return push(host_.global(module + "." + std::string(reader_.take_line()), reader_));
      }
      case '\x93': {  // STACK_GLOBAL
        const std::string* name = pop()->as<std::string>();
        const std::string* module = pop()->as<std::string>();
        reader_.require(name && module, "a global name that is not text");
        return push(host_.global(*module + "." + *name, reader_));
      }
      case 'R': {  // REDUCE
        PickleValue* arguments = pop();
        PickleValue* function = pop();
        stack_.push_back(host_.call(function, arguments, heap_, reader_));
        return;
      }
      case 'b':  // BUILD: attributes of a container carry no tensors
        pop();
        reader_.require(top()->as<PickleDict>() != nullptr,
                        "a pickle sets the state of something that is not a dictionary");
        return;
      case 'Q':  // BINPERSID
        return push(host_.persistent(pop(), reader_));
    }
    fail(ErrorKind::unsupported,
         "[{}] offset {}: pickle instruction {:#04x} is refused: only tensors, numbers, text and "
         "plain containers are read",
         reader_.name(), reader_.offset() - 1, static_cast<unsigned char>(code));
  }

  ByteReader& reader_;
  PickleHost& host_;
  PickleHeap& heap_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;  // stack heights at the open marks
  std::unordered_map<uint64_t, PickleValue*> memo_;
};

}  // namespace

PickleValue* run_pickle(ByteReader& reader, PickleHost& host, PickleHeap& heap) {
  return Machine(reader, host, heap).run();
}

}  // namespace artel::checkpoint
