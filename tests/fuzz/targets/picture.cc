#include "artel/data/images/image.h"
#include "tests/fuzz/target.h"
#include "tests/support/pictures.h"

namespace artel::fuzz::picture {

void read(const Bytes& bytes) {
  data::picture_size(bytes);
  for (const int channels : {0, 1, 3}) data::decode_picture(bytes, channels, 8 * channels);
}

std::vector<std::string> seeds() {
  std::vector<uint8_t> samples(16 * 12 * 3);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<uint8_t>(i * i);
  return {png(16, 12, 3, samples), png(16, 36, 1, samples),  png(8, 12, 4, samples),
          png(8, 12, 2, samples),  jpeg(16, 12, 3, samples), jpeg(16, 36, 1, samples)};
}

}  // namespace artel::fuzz::picture
