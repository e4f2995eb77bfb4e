#include <gtest/gtest.h>

#include <numeric>

#include "artel/transfer/convert.h"

namespace artel::transfer {
namespace {

Tensor counted(Shape shape) {
  Tensor tensor(std::move(shape));
  std::iota(tensor.values<float>().begin(), tensor.values<float>().end(), 0.0f);
  return tensor;
}

std::vector<float> values_of(const NamedTensors& tensors, const std::string& name) {
  const Tensor* const found = find_tensor(tensors, name);
  if (!found) return {};
  return {found->values<float>().begin(), found->values<float>().end()};
}

TEST(ConvertKeras, KernelsChangeTheirAxes) {
  const NamedTensors tensors =
      convert_keras("mobilenet_v2_tf",
                    {{"block_1_expand/kernel", counted({1, 1, 2, 3})},
                     {"block_1_depthwise/depthwise_kernel", counted({2, 1, 2, 1})},
                     {"Logits/kernel", counted({2, 3})},
                     {"unknown/kernel", counted({2, 3})}},
                    {});
  ASSERT_EQ(tensors.size(), 3);
  EXPECT_EQ(find_tensor(tensors, "features.2.conv.0.0.weight")->shape(), (Shape{3, 2, 1, 1}));
  EXPECT_EQ(values_of(tensors, "features.2.conv.0.0.weight"),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(find_tensor(tensors, "features.2.conv.1.0.weight")->shape(), (Shape{2, 1, 2, 1}));
  EXPECT_EQ(values_of(tensors, "features.2.conv.1.0.weight"), (std::vector<float>{0, 2, 1, 3}));
  EXPECT_EQ(values_of(tensors, "classifier.1.weight"), (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

TEST(ConvertKeras, ABatchNormTakesOverTheBiasAndTheEpsilon) {
  const NamedTensors tensors =
      convert_keras("resnet50_original",
                    {{"res3b_branch2a/kernel", counted({1, 1, 1, 2})},
                     {"res3b_branch2a/bias", Tensor::from<float>({2}, {1, 2})},
                     {"bn3b_branch2a/moving_mean", Tensor::from<float>({2}, {10, 20})},
                     {"bn3b_branch2a/moving_variance", Tensor::from<float>({2}, {1, 4})}},
                    {.epsilon = 1e-3});
  EXPECT_EQ(values_of(tensors, "layer2.1.bn1.running_mean"), (std::vector<float>{9, 18}));
  EXPECT_FLOAT_EQ(values_of(tensors, "layer2.1.bn1.running_var")[0], 1 + 1e-3f - 1e-5f);
  EXPECT_EQ(find_tensor(tensors, "layer2.1.conv1.bias"), nullptr);
}

TEST(ConvertKeras, NamesOfOldAndNewFiles) {
  const Tensor one({1});
  const NamedTensors tensors = convert_keras("resnet50_original",
                                             {{"bn2a_branch1/gamma", one},
                                              {"conv4_block6_3_bn/conv4_block6_3_bn/beta:0", one},
                                              {"bn5c_branch2b/bn5c_branch2b_running_mean:0", one},
                                              {"predictions/predictions/bias:0", one}},
                                             {});
  std::vector<std::string> names;
  for (const NamedTensor& entry : tensors) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"fc.bias", "layer1.0.downsample.1.weight",
                                             "layer3.5.bn3.bias", "layer4.2.bn2.running_mean"}));
}

TEST(ConvertKeras, VggLayersAreCounted) {
  const NamedTensors tensors =
      convert_keras("vgg19",
                    {{"block1_conv1/block1_conv1_W_1:0", counted({1, 1, 3, 1})},
                     {"block5_conv4/block5_conv4_b_1:0", Tensor({1})},
                     {"fc1/kernel", counted({49 * 2, 1})}},
                    {.bgr = true});
  EXPECT_EQ(values_of(tensors, "features.0.weight"), (std::vector<float>{2, 1, 0}));
  EXPECT_NE(find_tensor(tensors, "features.34.bias"), nullptr);
  // Pixel 1 of channel 0 was the third number.
  EXPECT_EQ(values_of(tensors, "classifier.0.weight")[1], 2);
}

TEST(ConvertFaces, TheScaleBecomesPartOfTheConvolution) {
  const NamedTensors tensors =
      convert_faces({{"conv32_down/conv/filters", counted({1, 1, 1, 2})},
                     {"conv32_down/conv/bias", Tensor::from<float>({2}, {1, 2})},
                     {"conv32_down/scale/weights", Tensor::from<float>({2}, {10, 100})},
                     {"conv32_down/scale/biases", Tensor::from<float>({2}, {5, 6})},
                     {"fc", counted({2, 3})}});
  EXPECT_EQ(values_of(tensors, "conv32_down.weight"), (std::vector<float>{0, 100}));
  EXPECT_EQ(values_of(tensors, "conv32_down.bias"), (std::vector<float>{15, 206}));
  EXPECT_EQ(find_tensor(tensors, "fc.weight")->shape(), (Shape{3, 2}));
}

}  // namespace
}  // namespace artel::transfer
