// Archives that were made to do harm.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "artel/base/checksum.h"
#include "artel/base/compress.h"
#include "artel/base/zip.h"
#include "artel/checkpoint/weights.h"
#include "artel/tensor/npy.h"
#include "tests/support/error_of.h"
#include "tests/support/gzip.h"
#include "tests/support/pickle.h"

namespace artel::checkpoint {
namespace {

using pickle::little;

struct Deflated {
  std::string name, content;           // inflated
  std::optional<uint64_t> size = {};   // claimed
  std::optional<uint64_t> place = {};  // claimed, of its header
  uint32_t checksum_error = 0;
};

std::string zip_of(const std::vector<Deflated>& entries) {
  std::string file, directory;
  for (const Deflated& entry : entries) {
    const std::string packed = gzip(entry.content, kRawDeflate);
    const uint32_t checksum = crc32(std::as_bytes(std::span(entry.content))) ^ entry.checksum_error;
    const std::string common = little(20, 2) + little(0, 2) + little(8, 2) + little(0, 4) +
                               little(checksum, 4) + little(packed.size(), 4) +
                               little(entry.size.value_or(entry.content.size()), 4) +
                               little(entry.name.size(), 2) + little(0, 2);
    const size_t place = file.size();
    file += "PK\3\4" + common + entry.name + packed;
    directory += "PK\1\2" + little(20, 2) + common + std::string(10, '\0') +
                 little(entry.place.value_or(place), 4) + entry.name;
  }
  const size_t place = file.size();
  return file + directory + "PK\5\6" + little(0, 4) + little(entries.size(), 2) +
         little(entries.size(), 2) + little(directory.size(), 4) + little(place, 4) + little(0, 2);
}

std::string npy(const std::string& shape, size_t elements) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return "\x93NUMPY" + little(1, 2) + little(header.size(), 2) + header +
         std::string(elements, '\0');
}

std::string refusal(const std::string& file, const std::function<void(const Bytes&)>& read) {
  return artel::error_of([&] { read(make_bytes(file, "x")); });
}

std::string refusal(const std::string& file) {
  return refusal(file, [](const Bytes& bytes) { parse_weights(bytes); });
}

// Fails if refusing takes more than a small multiple of the file's size in another process.
void expect_cheap_refusal(const std::string& file, const std::function<void(const Bytes&)>& read) {
  constexpr rlim_t kRoom = 24 << 20;
  const auto run = [&] {
    long pages = 0;
    std::FILE* status = std::fopen("/proc/self/statm", "r");
    if (status == nullptr || std::fscanf(status, "%ld", &pages) != 1) std::_Exit(3);
    const rlim_t most =
        static_cast<rlim_t>(pages) * 4096 + kRoom + 20 * static_cast<rlim_t>(file.size());
    const rlimit limit{most, most};
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      std::_Exit(refusal(file, read) == "" ? 1 : 0);
    } catch (const std::bad_alloc&) {
      std::_Exit(2);
    }
  };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  (void)run;  // sanitizers need the address space
#else
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
#endif
}

void read_weights(const Bytes& bytes) { parse_weights(bytes); }

TEST(Archives, DeflatedArraysAreRead) {
  EXPECT_EQ(refusal(zip_of({{"w.npy", npy("(3,)", 3)}, {"v.npy", npy("(1000, 1000)", 1000000)}})),
            "");
}

TEST(Archives, BombsAreRefusedBeforeTheyTakeMemory) {
  constexpr size_t kLarge = 64 << 20;
  // Sizes that are larger than any archive of this size should have.
  EXPECT_NE(refusal(zip_of({{"a.npy", npy("(3,)", 3), 0xfffffffe}})).find("that inflate to"),
            std::string::npos);
  // A size that is a lie, zeros that are no array, and an array whose shape does not fit.
  const std::string zeros = npy("(67108864,)", kLarge);
  const std::string lies = zip_of({{"a.npy", zeros, 1000}});
  EXPECT_NE(refusal(lies).find("has 1000 bytes, expected"), std::string::npos) << refusal(lies);
  expect_cheap_refusal(lies, read_weights);
  expect_cheap_refusal(zip_of({{"a.npy", std::string(kLarge, '\0')}}), read_weights);
  expect_cheap_refusal(zip_of({{"a.npy", npy("(7,)", kLarge)}}), read_weights);
  // An archive that is valid except for its last bytes.
  const std::string wrong = zip_of({{.name = "a.npy", .content = zeros, .checksum_error = 1}});
  EXPECT_NE(refusal(wrong).find("wrong checksum"), std::string::npos);
  expect_cheap_refusal(wrong, read_weights);
}

TEST(Archives, GzipBombsAreRefusedBeforeTheyTakeMemory) {
  const std::string file = gzip(std::string(64 << 20, 'x')) + gzip("another member");
  const auto read = [](const Bytes& bytes) { gunzip(bytes, 60 << 20); };
  EXPECT_NE(refusal(file, read).find("inflates to more than"), std::string::npos);
  expect_cheap_refusal(file, read);
  const Bytes all = gunzip(make_bytes(file, "x"));
  EXPECT_EQ(all.data.size(), (size_t{64} << 20) + 14);
  EXPECT_TRUE(all.text().ends_with("xanother member"));
  EXPECT_EQ(gunzip(make_bytes(gzip(""), "x")).data.size(), 0u);
}

// Minutes, if each member costs time for all of the output.
TEST(Archives, ManyEmptyGzipMembersTakeLinearTime) {
  const std::string empty = gzip("");
  std::string file = gzip(std::string(4 << 20, 'x'));
  for (int i = 0; i < 200'000; ++i) file += empty;
  const Bytes all = gunzip(make_bytes(file + gzip("the end"), "x"));
  EXPECT_EQ(all.data.size(), (size_t{4} << 20) + 7);
  EXPECT_TRUE(all.text().ends_with("xthe end"));
}

TEST(Archives, EntriesThatOverlapOrOccurTwiceAreRefused) {
  const std::string array = npy("(3,)", 3);
  EXPECT_NE(refusal(zip_of({{"a.npy", array}, {"a.npy", array}})).find("occurs twice"),
            std::string::npos);
  EXPECT_NE(refusal(zip_of({{"a.npy", array}, {.name = "b.npy", .content = array, .place = 0}}))
                .find("overlaps"),
            std::string::npos);
}

std::string torch_file(const std::string& object, const std::string& storage) {
  return zip_of({{"a/data.pkl", pickle::program(object)}, {"a/data/0", storage}});
}

TEST(Archives, StoragesHaveTheSizeThatTheirTensorsSay) {
  const std::string tensor = pickle::tensor("FloatStorage", "0", 2, 0, {2}, {1});
  EXPECT_EQ(refusal(torch_file(tensor, std::string(8, 'x'))), "");
  const std::string larger = torch_file(tensor, std::string(64 << 20, '\0'));
  EXPECT_NE(refusal(larger).find("expected 8 for 2 elements of a FloatStorage"), std::string::npos);
  expect_cheap_refusal(larger, read_weights);
}

TEST(Archives, ALongKeyThatIsUsedOftenTakesNoMemory) {
  const std::string key(1 << 20, 'k');
  const std::string tensor = pickle::tensor("FloatStorage", "0", 2, 0, {2}, {1}) + "q\2";
  std::string often = "](" + tensor;
  for (int i = 0; i < 100000; ++i) often += "}h\1h\2s";
  EXPECT_NE(
      refusal(torch_file("](" + pickle::text(key) + "q\1" + often + "ee", std::string(8, 'x')))
          .find("a name of"),
      std::string::npos);
  std::string keys = "](" + pickle::text(key) + "q\1";
  for (int i = 0; i < 10000; ++i)
    keys += "(" + pickle::text("storage") + pickle::global("torch", "FloatStorage") + "h\1" +
            pickle::text("cpu") + pickle::integer(2) + "tQ";
  expect_cheap_refusal(torch_file(keys + "e", std::string(8, 'x')), read_weights);
}

}  // namespace
}  // namespace artel::checkpoint
