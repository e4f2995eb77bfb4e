#include "artel/checkpoint/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "artel/base/file.h"
#include "artel/base/zip.h"
#include "artel/checkpoint/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/pickle.h"
#include "tests/support/temporary_folder.h"

namespace artel::checkpoint {
namespace {

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// A zip file with one storage "0".
Bytes zip_file(const std::string& object, const std::string& storage) {
  const TemporaryFolder folder;
  const std::string program = pickle::program(object);
  write_zip(folder / "a.pt", {{"a/data.pkl", {std::as_bytes(std::span(program))}},
                              {"a/data/0", {std::as_bytes(std::span(storage))}}});
  return make_bytes(read_file(folder / "a.pt"), "a.pt");
}

std::vector<float> values(const Tensor& tensor) {
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

std::string reason(const std::string& object, const std::string& storage = "abcdefgh") {
  return artel::error_of([&] { parse_torch(zip_file(object, storage)); });
}

const std::string kSix = floats({1, 2, 3, 4, 5, 6});

TEST(TorchFile, ReadsNestedContainersAndSharedStorage) {
  const std::string object = "}(" + pickle::text("net") + "}(" + pickle::text("w") +
                             pickle::tensor("FloatStorage", "0", 6, 0, {2, 3}, {3, 1}) +
                             pickle::text("row") +
                             pickle::tensor("FloatStorage", "0", 6, 3, {3}, {1}) + "u" +
                             pickle::text("epoch") + pickle::integer(7) + pickle::text("list") +
                             "](" + pickle::tensor("FloatStorage", "0", 6, 1, {}, {}) + "NeNu";
  // The trailing key without a value is refused; without it the file is read.
  EXPECT_NE(reason(object, kSix).find("a key without a value"), std::string::npos);
  const std::string good = object.substr(0, object.size() - 2) + "u";
  const NamedTensors tensors = parse_torch(zip_file(good, kSix));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "net.w");
  EXPECT_EQ(values(tensors[0].tensor), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensors[1].name, "net.row");
  EXPECT_EQ(tensors[1].tensor.raw(), tensors[0].tensor.raw() + 12);
  EXPECT_EQ(tensors[2].name, "list.0");
  EXPECT_EQ(values(tensors[2].tensor), (std::vector<float>{2}));
}

TEST(TorchFile, ReadsTransposedTensors) {
  const Bytes file = zip_file(pickle::tensor("FloatStorage", "0", 6, 0, {3, 2}, {1, 3}), kSix);
  const NamedTensors tensors = parse_torch(file);
  EXPECT_EQ(tensors.at(0).name, "tensor");
  EXPECT_EQ(values(tensors[0].tensor), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

TEST(TorchFile, ReadsLegacyFilesWithViews) {
  const std::string view = "(" + pickle::text("v") + pickle::integer(2) + pickle::integer(3) + "t";
  const std::string object =
      "}(" + pickle::text("a") + pickle::tensor("FloatStorage", "77", 6, 0, {6}, {1}, "N") +
      pickle::text("b") + pickle::tensor("FloatStorage", "77", 6, 1, {2}, {1}, view) + "u";
  const std::string file =
      pickle::legacy_file(object, "](" + pickle::text("77") + "e", pickle::little(6, 8) + kSix);
  const NamedTensors tensors = parse_torch(make_bytes(file, "x"));
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(values(tensors[1].tensor), (std::vector<float>{4, 5}));
  EXPECT_THROW(parse_torch(make_bytes(file.substr(0, file.size() - 1), "x")), Error);
}

TEST(TorchFile, TakesTheModelOutOfACheckpoint) {
  const std::string tensor = pickle::tensor("FloatStorage", "0", 6, 0, {6}, {1});
  const std::string object = "}(" + pickle::text("state_dict") + "}(" + pickle::text("module.w") +
                             tensor + "u" + pickle::text("optimizer") + "](" + tensor + "eu";
  const Bytes file = zip_file(object, kSix);
  const NamedTensors weights = parse_weights(file);
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(weights[0].name, "w");
  const NamedTensors all = parse_torch(file);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "state_dict.module.w");
}

TEST(TorchFile, RefusesEverythingElseByName) {
  EXPECT_NE(
      reason(pickle::global("os", "system") + pickle::text("ls") + "\x85R").find("'os.system'"),
      std::string::npos);
  EXPECT_NE(reason(pickle::global("torch", "ComplexFloatStorage")).find("ComplexFloatStorage"),
            std::string::npos);
  EXPECT_NE(reason(pickle::global("collections", "OrderedDict") + ")\x81").find("0x81"),
            std::string::npos);
  EXPECT_NE(reason(pickle::global("torch", "FloatStorage") + ")R").find("FloatStorage(...)"),
            std::string::npos);
}

TEST(TorchFile, RefusesTensorsOutsideOfTheirStorage) {
  const auto tensor = [](int64_t offset, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    return reason(pickle::tensor("FloatStorage", "0", 2, offset, shape, strides));
  };
  EXPECT_EQ(tensor(0, {2}, {1}), "");
  EXPECT_NE(tensor(1, {2}, {1}).find("does not fit"), std::string::npos);
  EXPECT_NE(tensor(0, {2}, {2}).find("does not fit"), std::string::npos);
  EXPECT_NE(tensor(0, {1000}, {0}).find("does not fit"), std::string::npos);
  EXPECT_NE(tensor(0, {2}, {1, 1}).find("does not fit"), std::string::npos);
  EXPECT_NE(tensor(0, {2000000000, 2000000000}, {0, 0}).find("describes tensors"),
            std::string::npos);
  EXPECT_NE(reason(pickle::tensor("FloatStorage", "9", 2, 0, {2}, {1})).find("data/9"),
            std::string::npos);
}

TEST(TorchFile, SurvivesCirclesAndBombs) {
  EXPECT_NE(reason("]q\1h\1a").find("nested"), std::string::npos);
  std::string bomb = "]q\1";
  for (char level = 1; level < 40; ++level)
    bomb += "](h" + std::string(1, level) + "h" + std::string(1, level) + "eq" +
            std::string(1, static_cast<char>(level + 1));
  EXPECT_NE(reason(bomb).find("too many"), std::string::npos);
}

TEST(TorchFile, RefusesBrokenPickles) {
  for (const char* program : {"a", "t", "h\1", "K", "X\xff\xff\xff\x7f", "0", "u", "}Ns", "Q",
                              "\x8a\x09", "I1x\n", "c", "}b", "\x80\x09"})
    EXPECT_NE(reason(program), "") << program;
}

}  // namespace
}  // namespace artel::checkpoint
