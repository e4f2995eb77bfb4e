// Weight files of TensorFlow.js, Keras and ONNX.
#include <gtest/gtest.h>

#include <bit>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/checkpoint/hdf5.h"
#include "artel/checkpoint/onnx.h"
#include "artel/checkpoint/tfjs.h"
#include "artel/checkpoint/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/hdf5_writer.h"
#include "tests/support/onnx_writer.h"
#include "tests/support/temporary_folder.h"

namespace artel::checkpoint {
namespace {

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), 4 * values.size()};
}

std::vector<float> floats_of(const NamedTensors& tensors, const std::string& name) {
  const Tensor* const found = find_tensor(tensors, name);
  if (!found) return {};
  const std::span<const float> values = found->values<float>();
  return {values.begin(), values.end()};
}

NamedTensors manifest(const std::string& text, const std::string& a, const std::string& b = "") {
  return parse_tfjs(make_bytes(text, "model.json"),
                    [&](const std::string& name) { return make_bytes(name == "a" ? a : b, name); });
}

TEST(Tfjs, TensorsCrossFiles) {
  const std::string all = bytes_of({1, 2, 3, 4, 5, 6});
  const NamedTensors tensors = manifest(
      R"({"format": "layers-model", "weightsManifest": [{"paths": ["a", "b"], "weights": [)"
      R"({"name": "dense/kernel", "shape": [2, 2], "dtype": "float32"},)"
      R"({"name": "dense/bias", "shape": [2], "dtype": "float32"}]}]})",
      all.substr(0, 7), all.substr(7));
  ASSERT_EQ(tensors.size(), 2);
  EXPECT_EQ(tensors[0].tensor.shape(), (Shape{2, 2}));
  EXPECT_EQ(floats_of(tensors, "dense/kernel"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(floats_of(tensors, "dense/bias"), (std::vector<float>{5, 6}));
}

TEST(Tfjs, QuantisedNumbersComeBack) {
  // uint8: 0, 1, 255; uint16: 0, 65535; float16: 1, -2; whole numbers are rounded.
  const std::string stored = std::string("\x00\x01\xff", 3) + std::string("\x00\x00\xff\xff", 4) +
                             std::string("\x00\x3c\x00\xc0", 4) + std::string("\x03", 1);
  const NamedTensors tensors = manifest(
      R"([{"paths": ["a"], "weights": [)"
      R"({"name": "u8", "shape": [3], "dtype": "float32",)"
      R"( "quantization": {"dtype": "uint8", "scale": 0.5, "min": -1}},)"
      R"({"name": "u16", "shape": [2], "dtype": "float32",)"
      R"( "quantization": {"dtype": "uint16", "scale": 2, "min": 10}},)"
      R"({"name": "half", "shape": [2], "dtype": "float32", "quantization": {"dtype": "float16"}},)"
      R"({"name": "whole", "shape": [1], "dtype": "int32",)"
      R"( "quantization": {"dtype": "uint8", "scale": 0.5, "min": 0}}]}])",
      stored);
  EXPECT_EQ(floats_of(tensors, "u8"), (std::vector<float>{-1, -0.5f, 126.5f}));
  EXPECT_EQ(floats_of(tensors, "u16"), (std::vector<float>{10, 131080}));
  EXPECT_EQ(floats_of(tensors, "half"), (std::vector<float>{1, -2}));
  EXPECT_EQ(find_tensor(tensors, "whole")->values<int32_t>()[0], 2);
}

TEST(Tfjs, SaysWhatIsWrong) {
  const auto with = [](const std::string& shape, const std::string& file, const std::string& type) {
    return R"([{"paths": [")" + file + R"("], "weights": [{"name": "w", "shape": [)" + shape +
           R"(], "dtype": ")" + type + R"("}]}])";
  };
  const std::string two = bytes_of({1, 2});
  EXPECT_EQ(artel::error_of([&] { manifest(with("3", "a", "float32"), two); }),
            "[model.json] tensor 'w' has 3 elements of 4 bytes, but its files have only 8 bytes "
            "left");
  EXPECT_EQ(artel::error_of([&] { manifest(with("1", "a", "float32"), two); }),
            "[model.json] 4 bytes of its files belong to no tensor");
  EXPECT_EQ(artel::error_of([&] { manifest(with("2", "../a", "float32"), two); }),
            "[model.json] names the file \"../a\", expected one in the same folder");
  EXPECT_EQ(artel::error_of([&] { manifest(with("2", "a", "complex64"), two); }),
            "[model.json] tensor 'w' has the element type complex64, which Artel does not read");
}

TEST(Hdf5, DataSetsAreNamedByTheirPath) {
  Hdf5Writer writer;
  writer.add("conv1", "kernel:0", {1, 1, 2, 2}, {1, 2, 3, 4});
  writer.add("conv1", "bias:0", {2}, {5, 6});
  writer.add("bn", "gamma:0", {1}, {7});
  const TemporaryFolder folder;
  write_file_atomically(folder / "weights.h5", writer.finish());
  const NamedTensors tensors = load_weights(folder / "weights.h5");
  ASSERT_EQ(tensors.size(), 3);
  EXPECT_EQ(tensors[0].name, "bn/gamma:0");
  EXPECT_EQ(find_tensor(tensors, "conv1/kernel:0")->shape(), (Shape{1, 1, 2, 2}));
  EXPECT_EQ(floats_of(tensors, "conv1/kernel:0"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(floats_of(tensors, "conv1/bias:0"), (std::vector<float>{5, 6}));
}

TEST(Hdf5, AFileThatPointsOutsideIsRefused) {
  Hdf5Writer writer;
  writer.add("conv1", "bias:0", {2}, {5, 6});
  const std::string whole = writer.finish();
  EXPECT_NE(artel::error_of([&] {
              parse_hdf5(make_bytes(whole.substr(0, whole.size() / 2), "a.h5"));
            }).find("[a.h5]"),
            std::string::npos);
  std::string newer = whole;
  newer[8] = 2;
  EXPECT_EQ(artel::error_of([&] { parse_hdf5(make_bytes(newer, "a.h5")); }),
            "[a.h5] superblock version 2, but Artel reads 0 and 1; write the file again with "
            "libver='earliest'");
}

TEST(Hdf5, WhatIsNotReadIsNamed) {
  Hdf5Writer writer;
  writer.add("conv1", "bias:0", {2}, {5, 6});
  const std::string whole = writer.finish();
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = whole;
    const size_t at = other.find(from);
    EXPECT_NE(at, other.npos);
    other.replace(at, to.size(), to);
    return artel::error_of([&] { parse_hdf5(make_bytes(other, "a.h5")); });
  };
  const std::string advice =
      ", which Artel does not read; write the file again with little-endian numbers, not "
      "compressed "
      "and not in chunks";
  const std::string number_type("\x11\x20\x1f\0\x04", 5), layout("\x03\x01", 2);
  EXPECT_EQ(changed(number_type, "\x11\x21"),
            "[a.h5: 'conv1/bias:0'] has numbers of another kind or order of bytes" + advice);
  const size_t message = whole.find(std::string("\x08\0\x18\0", 4));
  ASSERT_NE(message, whole.npos);
  const std::string head = whole.substr(message, 8);
  EXPECT_EQ(changed(head + layout, head + "\x03\x02"),
            "[a.h5: 'conv1/bias:0'] lies in pieces" + advice);
  EXPECT_EQ(changed(head + layout, head + layout + std::string(8, '\xff')),
            "[a.h5: 'conv1/bias:0'] has never been written" + advice);
}

TEST(Hdf5, SymbolicLinksAreLeftOut) {
  Hdf5Writer writer;
  writer.add("conv1", "bias:0", {2}, {5, 6});
  writer.add_link("conv1", "the_same");
  const NamedTensors tensors = parse_hdf5(make_bytes(writer.finish(), "a.h5"));
  ASSERT_EQ(tensors.size(), 1);
  EXPECT_EQ(tensors[0].name, "conv1/bias:0");
}

TEST(Onnx, InitialisersOfEachKind) {
  const std::string halves("\x00\x3c\x00\xc0", 4);
  const std::string model =
      onnx_model({onnx_tensor("raw", 1, {2}, wire_field(9, bytes_of({1.5f, -2}))),
                  onnx_tensor("listed", 1, {2}, wire_field(4, bytes_of({3, 4}))),
                  onnx_tensor("half", 10, {2}, wire_field(9, halves)),
                  onnx_tensor("scalar", 7, {}, wire_field(7, wire_number(~uint64_t{0})))});
  const TemporaryFolder folder;
  write_file_atomically(folder / "network.onnx", model);
  const NamedTensors tensors = load_weights(folder / "network.onnx");
  ASSERT_EQ(tensors.size(), 4);
  EXPECT_EQ(floats_of(tensors, "raw"), (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(floats_of(tensors, "listed"), (std::vector<float>{3, 4}));
  EXPECT_EQ(find_tensor(tensors, "half")->to(DType::f32).values<float>()[1], -2);
  EXPECT_EQ(find_tensor(tensors, "scalar")->values<int64_t>()[0], -1);
}

TEST(Onnx, LargeTensorsMayLieInAnotherFile) {
  const auto entry = [](const std::string& key, const std::string& value) {
    return wire_field(13, wire_field(1, key) + wire_field(2, value));
  };
  const std::string place =
      entry("location", "data.bin") + entry("offset", "4") + entry("length", "8");
  const TemporaryFolder folder;
  write_file_atomically(
      folder / "network.onnx",
      onnx_model({onnx_tensor("w", 1, {2}, place + wire_field(14, uint64_t{1}))}));
  write_file_atomically(folder / "data.bin", bytes_of({9, 1, 2}));
  EXPECT_EQ(floats_of(load_weights(folder / "network.onnx"), "w"), (std::vector<float>{1, 2}));
  const std::string outside = onnx_model(
      {onnx_tensor("w", 1, {2}, entry("location", "/etc/passwd") + wire_field(14, uint64_t{1}))});
  EXPECT_EQ(artel::error_of([&] { parse_onnx(make_bytes(outside, "a"), {}); }),
            "[a] tensor 'w' is stored in '/etc/passwd', expected a file in the same folder");
}

TEST(Onnx, ShapesAreComparedWithTheBytes) {
  const std::string model = onnx_model({onnx_tensor("w", 1, {3}, wire_field(9, bytes_of({1, 2})))});
  EXPECT_NE(
      artel::error_of([&] { parse_onnx(make_bytes(model, "a"), {}); }).find("[a: tensor 'w']"),
      std::string::npos);
  EXPECT_FALSE(is_onnx(make_bytes("hello, world", "a")));
  EXPECT_TRUE(is_onnx(make_bytes(model, "a")));
}

}  // namespace
}  // namespace artel::checkpoint
