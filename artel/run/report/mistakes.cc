#include "artel/run/report/mistakes.h"

#include <algorithm>
#include <cmath>

#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/data/images/resize.h"
#include "artel/run/config/setup.h"

namespace artel {
namespace {

constexpr int64_t kLargestTile = 96;  // pixels of a side
constexpr int64_t kColumns = 6;

data::Image read_sample(const data::Dataset& set, const data::Augmentation& view, int64_t sample) {
  const Shape& shape = set.layout().input;
  data::Image image(shape[0], shape[1], shape[2]);
  std::vector<std::byte> target(set.layout().target_bytes());
  set.read(sample, std::as_writable_bytes(std::span(image.pixels)), target);
  Random unused({0});
  view.apply(image, unused);
  const int64_t side = std::max(image.height, image.width);
  if (side <= kLargestTile) return image;
  return data::resized(image, std::max<int64_t>(1, image.height * kLargestTile / side),
                       std::max<int64_t>(1, image.width * kLargestTile / side));
}

// Bytes of pixels that are between 0 and 1, or are made so.
void draw(const data::Image& image, data::Picture& sheet, int64_t top, int64_t left) {
  const auto [least, most] = std::minmax_element(image.pixels.begin(), image.pixels.end());
  const float low = std::min(0.0f, *least), high = std::max(1.0f, *most);
  for (int64_t channel = 0; channel < image.channels; ++channel)
    for (int64_t y = 0; y < image.height; ++y)
      for (int64_t x = 0; x < image.width; ++x) {
        const float share = (image.row(channel, y)[x] - low) / (high - low);
        const int64_t pixel = (top + y) * sheet.width + left + x;
        sheet.samples[static_cast<size_t>(pixel * sheet.channels + channel)] =
            static_cast<uint8_t>(std::lround(255 * share));
      }
}

}  // namespace

bool are_pictures(const data::SampleLayout& layout) {
  return layout.classes > 1 && layout.input.rank() == 3 && layout.input_type == DType::f32 &&
         (layout.input[0] == 1 || layout.input[0] == 3) &&
         layout.target_kind == data::TargetKind::classes && layout.target.rank() == 0;
}

PictureSheet draw_samples(const data::Dataset& set, const data::Augmentation& augment,
                          const std::vector<int64_t>& samples) {
  const data::Augmentation view = augment.for_viewing();
  PictureSheet sheet;
  const auto count = static_cast<int64_t>(samples.size());
  sheet.columns = std::clamp<int64_t>(count, 1, kColumns);
  for (int64_t i = 0; i < count; ++i) {
    const data::Image image = read_sample(set, view, samples[static_cast<size_t>(i)]);
    data::Picture& picture = sheet.picture;
    if (i == 0) {
      sheet.tile_width = image.width;
      sheet.tile_height = image.height;
      picture = {.height = (count + sheet.columns - 1) / sheet.columns * image.height,
                 .width = sheet.columns * image.width,
                 .channels = image.channels,
                 .samples = {}};
      picture.samples.assign(static_cast<size_t>(picture.height * picture.width * picture.channels),
                             255);
    }
    draw(image, picture, i / sheet.columns * image.height, i % sheet.columns * image.width);
  }
  return sheet;
}

PictureSheet draw_mistakes(const std::vector<Mistake>& mistakes, const TestedSet& tested) {
  std::vector<int64_t> samples;
  for (const Mistake& mistake : mistakes) samples.push_back(mistake.sample);
  return draw_samples(tested.set, tested.augment, samples);
}

nlohmann::ordered_json to_json(const std::vector<Mistake>& mistakes, const TestedSet& tested) {
  const data::SampleLayout& layout = tested.set.layout();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Mistake& mistake : mistakes)
    list.push_back({{"sample", mistake.sample * tested.size / tested.set.size()},
                    {"label", class_name(layout, mistake.label)},
                    {"answer", class_name(layout, mistake.answer)},
                    {"probability", mistake.probability}});
  return list;
}

PictureSheet save_mistakes(const RunFolder& folder, const std::vector<Mistake>& mistakes,
                           const TestedSet& tested, int64_t step) {
  if (mistakes.empty()) {
    std::error_code ignored;
    std::filesystem::remove(folder.mistakes(), ignored);
    std::filesystem::remove(folder.mistakes_picture(), ignored);
    return {};
  }
  PictureSheet sheet = draw_mistakes(mistakes, tested);
  const nlohmann::ordered_json json = {{"step", step},
                                       {"part", tested.part},
                                       {"columns", sheet.columns},
                                       {"tile_width", sheet.tile_width},
                                       {"tile_height", sheet.tile_height},
                                       {"mistakes", to_json(mistakes, tested)}};
  write_file_atomically(folder.mistakes_picture(), data::encode_png(sheet.picture));
  write_file_atomically(
      folder.mistakes(),
      json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
  return sheet;
}

}  // namespace artel
