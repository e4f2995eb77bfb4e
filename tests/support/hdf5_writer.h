// Small HDF5 files as the library of that name writes them: superblock 0, groups by symbol tables,
// data sets in one piece.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace artel {

class Hdf5Writer {
 public:
  // A data set of floats in a group of its own: "layer/name".
  void add(const std::string& layer, const std::string& name, const std::vector<uint64_t>& shape,
           const std::vector<float>& values) {
    layers_[layer].push_back({name, write_floats(shape, values)});
  }

  // A symbolic link; where it leads does not matter to readers that leave links out.
  void add_link(const std::string& layer, const std::string& name) {
    layers_[layer].push_back({name, kNone});
  }

  std::string finish() {
    std::vector<Member> root;
    for (auto& [layer, members] : layers_) root.push_back({layer, write_group(members)});
    const uint64_t top = write_group(root);
    std::string block("\x89HDF\r\n\x1a\n", 8);
    block += std::string("\0\0\0\0\0\x08\x08\0\x04\0\x10\0\0\0\0\0", 16);
    for (const uint64_t address : {uint64_t{0}, kNone, kSuperblock + file_.size(), kNone})
      block += number(address);
    block += number(0) + number(top) + std::string(24, '\0');
    return block + file_;
  }

 private:
  static constexpr uint64_t kNone = ~uint64_t{0}, kSuperblock = 96;
  struct Member {
    std::string name;
    uint64_t header;
  };

  static std::string number(uint64_t value, int bytes = 8) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  }
  uint64_t append(std::string block) {
    const uint64_t address = kSuperblock + file_.size();
    block.resize((block.size() + 7) / 8 * 8);
    file_ += block;
    return address;
  }
  static std::string message(int type, std::string content) {
    content.resize((content.size() + 7) / 8 * 8);
    return number(type, 2) + number(content.size(), 2) + number(0, 4) + content;
  }
  uint64_t write_header(const std::vector<std::string>& messages) {
    std::string all;
    for (const std::string& each : messages) all += each;
    return append(number(1, 2) + number(messages.size(), 2) + number(1, 4) + number(all.size(), 4) +
                  number(0, 4) + all);
  }

  uint64_t write_floats(const std::vector<uint64_t>& shape, const std::vector<float>& values) {
    const std::string bytes(reinterpret_cast<const char*>(values.data()), 4 * values.size());
    const uint64_t data = append(bytes);
    std::string space = number(1, 1) + number(shape.size(), 1) + number(0, 6);
    for (const uint64_t extent : shape) space += number(extent);
    const std::string type("\x11\x20\x1f\0\x04\0\0\0\0\0\x20\0\x17\x08\0\x17\x7f\0\0\0", 20);
    return write_header(
        {message(1, space), message(3, type),
         message(8, number(3, 1) + number(1, 1) + number(data) + number(bytes.size()))});
  }

  uint64_t write_group(const std::vector<Member>& members) {
    std::string names(8, '\0'), list = "SNOD" + number(1, 2) + number(members.size(), 2);
    for (const Member& member : members) {
      list += number(names.size()) + number(member.header) + std::string(24, '\0');
      names += member.name + '\0';
    }
    const uint64_t segment = append(names);
    const uint64_t heap =
        append("HEAP" + number(0, 4) + number(names.size()) + number(kNone) + number(segment));
    const uint64_t tree = append("TREE" + number(0, 2) + number(1, 2) + number(kNone) +
                                 number(kNone) + number(0) + number(append(list)) + number(0));
    return write_header({message(17, number(tree) + number(heap))});
  }

  std::string file_;
  std::map<std::string, std::vector<Member>> layers_;
};

}  // namespace artel
