// Makes loud.avi and silent.avi by the writer of stable-diffusion.cpp (examples/common/media_io.cpp):
//   cd stable-diffusion.cpp && g++ -std=c++17 -I include -I examples/common -I thirdparty \
//     FILMS.cpp examples/common/media_io.cpp examples/common/log.cpp -o films && ./films
#include <cstring>
#include <vector>

#include "media_io.h"

int main() {
    const uint32_t width = 32, height = 16, rate = 24000;
    const uint8_t greys[] = {50, 120, 200};
    std::vector<std::vector<uint8_t>> pixels;
    std::vector<sd_image_t> images;
    for (uint8_t grey : greys) {
        pixels.emplace_back(width * height * 3, grey);
    }
    for (auto& frame : pixels) {
        images.push_back({width, height, 3, frame.data()});
    }
    std::vector<float> samples;
    for (int i = 0; i < 900; i++) {
        samples.push_back(i / 1500.f);
        samples.push_back(-i / 1500.f);
    }
    sd_audio_t audio = {rate, 2, samples.size() / 2, samples.data()};
    for (const sd_audio_t* sound : {(const sd_audio_t*)&audio, (const sd_audio_t*)nullptr}) {
        const char* name = sound ? "loud.avi" : "silent.avi";
        if (create_mjpg_avi_from_sd_images(name, images.data(), (int)images.size(), 8, 100, sound) != 0) {
            return 1;
        }
    }
}
