// Random changes to images, so that a network sees each of them in many forms.
//
// A change depends on (seed, epoch, sample) alone: the same image in the same epoch is changed in
// the same way whichever worker or thread reads it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "artel/base/random.h"
#include "artel/tensor/shape.h"

namespace artel::data {

// Planes of floats: [channels, height, width].
struct Image {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<float> pixels;

  Image() = default;
  Image(int64_t channels, int64_t height, int64_t width)
      : channels(channels), height(height), width(width), pixels(channels * height * width) {}
  Shape shape() const { return {channels, height, width}; }
  float* row(int64_t channel, int64_t y) { return pixels.data() + (channel * height + y) * width; }
  const float* row(int64_t channel, int64_t y) const {
    return pixels.data() + (channel * height + y) * width;
  }
};

// One step of a pipeline.
struct Transform {
  std::string text;  // the form in a configuration file, such as "crop 32 4"
  bool random;       // left out of, or replaced in, the pipeline for test data
  std::function<void(Image&, Random&)> apply;
  // The shape after this step; throws if the step cannot be applied to such images.
  std::function<Shape(const Shape&)> output_shape;
};

// Pads each side with `padding` zeros and cuts a square of `size` pixels at a random place.
Transform crop(int64_t size, int64_t padding = 0);
// Cuts a square from the middle.
Transform centre_crop(int64_t size);
// Mirrors left and right, half of the time.
Transform flip();
// (pixel - mean) / deviation; one pair for all channels or one for each.
Transform normalise(std::vector<float> means, std::vector<float> deviations);
// Scales to this size; averages when it shrinks, so that nothing flickers.
Transform resize(int64_t height, int64_t width);
// Multiplies brightness, contrast and saturation by random factors in [1 - x, 1 + x], on pixels in
// [0, 1].
Transform jitter(float brightness, float contrast, float saturation);
// Sets a square of `size` pixels at a random place to zero; it may reach over the border.
Transform cutout(int64_t size);

// The pipeline of a data set.
struct Augmentation {
  std::vector<Transform> steps;
  // Strength of mixup: inputs and targets become x + (1 - x) mixtures with another sample of the
  // set, x from the Beta(mixup, mixup) distribution. 0 means none. Needs classes as targets; they
  // become f32 [classes], one weight for each.
  double mixup = 0;

  // Reads "crop SIZE [PADDING]", "centre_crop SIZE", "flip", "normalise MEAN... DEVIATION...",
  // "resize HEIGHT [WIDTH]", "jitter BRIGHTNESS [CONTRAST [SATURATION]]", "cutout SIZE" and
  // "mixup STRENGTH", in the order in which they are applied. Throws for any other text and names
  // the nearest.
  static Augmentation parse(const std::vector<std::string>& steps);

  // The same without chance, for test data: crops are taken from the middle, flip, jitter, cutout
  // and mixup left out. Images that fit the one fit the other, and come out in the same shape.
  Augmentation for_testing() const;

  Shape output_shape(Shape shape) const;
  void apply(Image& image, Random& random) const;
};

// A number of the Beta(strength, strength) distribution.
float beta(Random& random, double strength);

}  // namespace artel::data
