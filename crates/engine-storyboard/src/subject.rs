//! The catalogue of subjects: one row for everything that can be drawn into a scene, with its body,
//! support, usual action, home, size, speed and colour. It draws nothing.

use serde::Deserialize;

use crate::lexicon::Place;
use crate::raster::colour::Rgb;

/// Kind of body, which decides how a subject is drawn and moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Sky,
    Person,
    Quadruped,
    Bird,
    Swimmer,
    Insect,
    Vehicle,
    Building,
    Plant,
    Thing,
}

impl BodyKind {
    /// Whether it is the body of a person or an animal.
    pub(crate) fn lives(self) -> bool {
        use BodyKind::{Bird, Insect, Person, Quadruped, Swimmer};
        matches!(self, Person | Quadruped | Bird | Swimmer | Insect)
    }
}

/// Support of a subject in a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stance {
    /// Stands on its feet and moves on them.
    Walks,
    /// Moves on wheels.
    Rolls,
    /// Fixed to the ground.
    Stands,
    /// Lies on a table, if there is one.
    Lies,
    Flies,
    /// Floats on water.
    Floats,
    /// Swims in water.
    Swims,
    /// Hangs in the sky, far away.
    Hangs,
}

/// Action of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Act {
    /// Is there: breathes, looks around, sways.
    Stand,
    Sit,
    Sleep,
    Walk,
    Run,
    Jump,
    Dance,
    Eat,
    /// Drives, sails, rides or drifts: moves without steps.
    Move,
    Fly,
    /// Comes down and stays there.
    Land,
    /// Leaves the ground.
    Rise,
    Fall,
    Swim,
    /// Opens itself.
    Open,
    /// Greets.
    Wave,
    /// Makes music.
    Play,
    Read,
    Turn,
    Burn,
}

/// A row of the catalogue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubjectFacts {
    /// The noun in English, singular.
    pub(crate) noun: &'static str,
    pub(crate) body: BodyKind,
    pub(crate) stance: Stance,
    /// Its action if the words name none.
    pub(crate) usual: Act,
    /// Its place if the words name none.
    pub(crate) home: Option<Place>,
    /// Side of the square that it is drawn in, in stage units.
    pub(crate) size: f32,
    /// Speed when it moves, in stage units per second.
    pub(crate) speed: f32,
    /// Its natural colour; `None`: the scene's accent.
    pub(crate) colour: Option<Rgb>,
}

// Homes by their bare names, because `Some(Place::Sea)` in every row of the table below would bury
// the rest of it.
macro_rules! home {
    (Any) => {
        None
    };
    ($place:ident) => {
        Some(Place::$place)
    };
}

macro_rules! subjects {
    ($($name:ident $noun:literal $body:ident $stance:ident $usual:ident $home:ident $size:literal $speed:literal $colour:literal;)*) => {
        /// Everything that can be drawn into a scene.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Subject { $($name),* }

        impl Subject {
            /// All of them, in the order of the catalogue.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The row of this subject.
            pub(crate) const fn facts(self) -> SubjectFacts {
                match self {
                    $(Self::$name => SubjectFacts {
                        noun: $noun,
                        body: BodyKind::$body,
                        stance: Stance::$stance,
                        usual: Act::$usual,
                        home: home!($home),
                        size: $size,
                        speed: $speed,
                        colour: match $colour { 0 => None, code => Some(Rgb::hex(code)) },
                    }),*
                }
            }
        }
    };
}

subjects! {
    // name noun, body, stance, what it does unasked, home, size, speed, colour (0: the accent)
    Sun "sun" Sky Hangs Stand Any 0.0 0.0 0;
    Moon "moon" Sky Hangs Stand Any 0.0 0.0 0;
    Planet "planet" Sky Hangs Stand Space 0.62 0.0 0xd0_a878;
    Earth "earth" Sky Hangs Stand Space 0.7 0.0 0x2f_66c8;
    Comet "comet" Sky Flies Fly Space 0.5 0.03 0xe8_f0ff;
    BlackHole "black hole" Sky Hangs Stand Space 0.6 0.0 0xf0_a050;
    Satellite "satellite" Vehicle Flies Fly Space 0.34 0.02 0xb8_c0cc;
    Fireworks "fireworks" Sky Hangs Burn City 0.5 0.0 0xff_d24a;

    Person "person" Person Walks Walk Hills 0.32 0.058 0;
    Man "man" Person Walks Walk Hills 0.33 0.058 0;
    Woman "woman" Person Walks Walk Hills 0.32 0.058 0;
    Boy "boy" Person Walks Walk Hills 0.25 0.058 0;
    Girl "girl" Person Walks Walk Hills 0.25 0.058 0;
    Baby "baby" Person Walks Sit Room 0.2 0.02 0;
    OldMan "old man" Person Walks Walk Hills 0.31 0.031 0x5c_6470;
    OldWoman "old woman" Person Walks Walk Hills 0.3 0.031 0x6a_5474;
    Couple "couple" Person Walks Walk Hills 0.32 0.044 0;
    Crowd "crowd" Person Walks Stand City 0.32 0.034 0;
    Astronaut "astronaut" Person Walks Walk Space 0.34 0.034 0xe8_eaee;
    Knight "knight" Person Walks Stand Hills 0.34 0.044 0x9a_a2ae;
    Chef "chef" Person Walks Stand Room 0.34 0.034 0xf0_eee8;
    Dancer "dancer" Person Walks Dance Room 0.36 0.058 0xd8_6a8a;
    Monk "monk" Person Walks Walk Mountains 0.32 0.037 0xd0_7a2c;
    Farmer "farmer" Person Walks Walk Hills 0.33 0.048 0x4a_6a98;
    Doctor "doctor" Person Walks Stand Room 0.34 0.044 0xf2_f4f4;
    Firefighter "firefighter" Person Walks Walk City 0.33 0.058 0xc8_4a30;
    Police "police officer" Person Walks Walk City 0.33 0.058 0x2c_3c6c;
    Soldier "soldier" Person Walks Walk Hills 0.33 0.058 0x5a_6a48;
    King "king" Person Walks Stand Room 0.34 0.037 0x8a_2c4a;
    Queen "queen" Person Walks Stand Room 0.33 0.037 0x6a_3c8a;
    Wizard "wizard" Person Walks Stand Forest 0.35 0.041 0x3c_4a98;
    Witch "witch" Person Walks Stand Forest 0.34 0.041 0x3a_2c48;
    Pirate "pirate" Person Walks Stand Sea 0.33 0.044 0x7a_3434;
    Robot "robot" Person Walks Walk City 0.34 0.041 0x90_a0ac;
    Musician "musician" Person Walks Play City 0.34 0.034 0;
    Painter "painter" Person Walks Stand Hills 0.34 0.034 0;
    Skier "skier" Person Walks Move Mountains 0.3 0.1 0;
    Cyclist "cyclist" Person Rolls Move City 0.36 0.12 0;
    Rider "rider" Person Walks Run Hills 0.42 0.07 0;
    Fisherman "fisherman" Person Walks Stand Lake 0.32 0.034 0x4a_6a60;
    Diver "diver" Person Swims Swim Underwater 0.4 0.02 0x2c_3444;
    Bride "bride" Person Walks Stand Hills 0.33 0.034 0xf6_f2ee;
    Clown "clown" Person Walks Wave City 0.33 0.044 0xe8_b030;
    Ghost "ghost" Person Flies Fly Room 0.3 0.015 0xe8_eef4;
    Mermaid "mermaid" Person Swims Swim Underwater 0.44 0.02 0x2f_9c8a;
    Snowman "snowman" Thing Stands Stand Hills 0.34 0.0 0xf4_f8fc;
    Umbrella "umbrella" Person Walks Walk City 0.36 0.058 0;

    Cat "cat" Quadruped Walks Sit Room 0.32 0.04 0x3a_3440;
    Dog "dog" Quadruped Walks Stand Hills 0.3 0.06 0x9a_6a44;
    Horse "horse" Quadruped Walks Stand Hills 0.38 0.07 0x6e_4630;
    Camel "camel" Quadruped Walks Walk Desert 0.38 0.03 0xb0_8252;
    Cow "cow" Quadruped Walks Eat Hills 0.36 0.024 0xf0_ece4;
    Sheep "sheep" Quadruped Walks Eat Hills 0.26 0.024 0xf0_ece0;
    Goat "goat" Quadruped Walks Stand Mountains 0.26 0.03 0xd8_ccb8;
    Pig "pig" Quadruped Walks Stand Hills 0.26 0.024 0xe8_a8a8;
    Donkey "donkey" Quadruped Walks Stand Hills 0.34 0.03 0x8a_8078;
    Deer "deer" Quadruped Walks Stand Forest 0.36 0.06 0xa8_7444;
    Lion "lion" Quadruped Walks Walk Desert 0.36 0.04 0xd0_9a50;
    Tiger "tiger" Quadruped Walks Walk Forest 0.36 0.04 0xe0_8a34;
    Bear "bear" Quadruped Walks Walk Forest 0.38 0.03 0x6a_4a34;
    PolarBear "polar bear" Quadruped Walks Walk Mountains 0.38 0.03 0xf0_eee4;
    Panda "panda" Quadruped Walks Sit Forest 0.34 0.02 0xf2_f0ea;
    Elephant "elephant" Quadruped Walks Walk Desert 0.5 0.026 0x8a_8c94;
    Giraffe "giraffe" Quadruped Walks Walk Desert 0.54 0.03 0xdc_ae60;
    Zebra "zebra" Quadruped Walks Walk Desert 0.36 0.04 0xf0_eee8;
    Rhino "rhino" Quadruped Walks Walk Desert 0.4 0.026 0x88_8884;
    Hippo "hippo" Quadruped Walks Stand Lake 0.4 0.02 0x7c_6c78;
    Fox "fox" Quadruped Walks Walk Forest 0.28 0.05 0xd8_6c2c;
    Wolf "wolf" Quadruped Walks Walk Forest 0.32 0.05 0x70_7680;
    Rabbit "rabbit" Quadruped Walks Sit Hills 0.22 0.05 0xb8_a088;
    Mouse "mouse" Quadruped Walks Stand Room 0.16 0.05 0x8c_8480;
    Squirrel "squirrel" Quadruped Walks Sit Forest 0.2 0.05 0xb0_6434;
    Hedgehog "hedgehog" Quadruped Walks Walk Forest 0.18 0.016 0x7a_6450;
    Monkey "monkey" Quadruped Walks Sit Forest 0.3 0.04 0x7a_5438;
    Kangaroo "kangaroo" Quadruped Walks Jump Desert 0.36 0.06 0xb0_7c50;
    Unicorn "unicorn" Quadruped Walks Walk Forest 0.38 0.05 0xf4_f0f6;
    Dinosaur "dinosaur" Quadruped Walks Walk Hills 0.56 0.03 0x6a_8a4c;
    Dragon "dragon" Quadruped Flies Fly Mountains 0.56 0.05 0x4a_8a5c;
    Crocodile "crocodile" Quadruped Walks Stand Lake 0.38 0.02 0x5c_7444;
    Turtle "turtle" Quadruped Walks Walk Sea 0.24 0.01 0x5c_8a4c;
    Frog "frog" Quadruped Walks Sit Lake 0.18 0.04 0x5a_a444;
    Snake "snake" Quadruped Walks Move Desert 0.3 0.02 0x7a_9040;
    Snail "snail" Quadruped Walks Move Hills 0.18 0.004 0xc0_8c54;

    Birds "bird" Bird Flies Fly Any 0.2 0.05 0x4a_5a70;
    Flock "flock of birds" Bird Flies Fly Any 0.5 0.05 0x4a_5a70;
    Eagle "eagle" Bird Flies Fly Mountains 0.36 0.05 0x5c_4028;
    Owl "owl" Bird Walks Sit Forest 0.28 0.0 0x8a_6a48;
    Duck "duck" Bird Floats Swim Lake 0.22 0.014 0xd8_b048;
    Swan "swan" Bird Floats Swim Lake 0.3 0.012 0xf6_f6f2;
    Penguin "penguin" Bird Walks Walk Mountains 0.26 0.016 0x2a_2e38;
    Chicken "chicken" Bird Walks Eat Hills 0.22 0.02 0xd8_9050;
    Parrot "parrot" Bird Flies Fly Forest 0.26 0.045 0xd8_3a30;
    Flamingo "flamingo" Bird Walks Stand Lake 0.32 0.016 0xf0_8ca0;
    Bat "bat" Bird Flies Fly Forest 0.26 0.06 0x2c_2834;

    Fish "fish" Swimmer Swims Swim Underwater 0.24 0.03 0;
    School "school of fish" Swimmer Swims Swim Underwater 0.55 0.03 0;
    Shark "shark" Swimmer Swims Swim Underwater 0.6 0.05 0x6a_7c8a;
    Whale "whale" Swimmer Swims Swim Underwater 0.85 0.04 0x4a_6f94;
    Dolphin "dolphin" Swimmer Swims Swim Sea 0.4 0.06 0x5a_7c9c;
    Octopus "octopus" Swimmer Swims Swim Underwater 0.44 0.014 0xc0_5a64;
    Jellyfish "jellyfish" Swimmer Swims Swim Underwater 0.36 0.008 0xd8_9ad0;
    Crab "crab" Swimmer Walks Walk Sea 0.2 0.02 0xd8_5a34;
    Seal "seal" Swimmer Walks Stand Sea 0.3 0.014 0x6c_6c74;

    Butterfly "butterfly" Insect Flies Fly Hills 0.16 0.035 0;
    Bee "bee" Insect Flies Fly Hills 0.14 0.04 0xf0_b830;
    Dragonfly "dragonfly" Insect Flies Fly Lake 0.18 0.05 0x3a_9aa8;
    Ladybug "ladybug" Insect Walks Walk Hills 0.14 0.01 0xd0_3028;
    Spider "spider" Insect Walks Walk Forest 0.18 0.02 0x34_2c2c;

    Car "car" Vehicle Rolls Move City 0.4 0.06 0;
    Taxi "taxi" Vehicle Rolls Move City 0.4 0.06 0xf2_c020;
    PoliceCar "police car" Vehicle Rolls Move City 0.4 0.07 0xf2_f4f6;
    Bus "bus" Vehicle Rolls Move City 0.52 0.05 0;
    Truck "truck" Vehicle Rolls Move City 0.5 0.05 0;
    Ambulance "ambulance" Vehicle Rolls Move City 0.44 0.07 0xf4_f4f0;
    FireEngine "fire engine" Vehicle Rolls Move City 0.5 0.07 0xc8_2c24;
    Tractor "tractor" Vehicle Rolls Move Hills 0.36 0.024 0xc8_4030;
    Bicycle "bicycle" Vehicle Rolls Stand City 0.32 0.05 0;
    Motorcycle "motorcycle" Vehicle Rolls Move City 0.34 0.08 0;
    Train "train" Vehicle Rolls Move Hills 0.6 0.1 0;
    SteamTrain "steam train" Vehicle Rolls Move Hills 0.56 0.08 0x3a_5a48;
    Tram "tram" Vehicle Rolls Move City 0.54 0.05 0;
    Sled "sled" Vehicle Walks Move Mountains 0.34 0.05 0x9a_6a3c;
    Boat "boat" Vehicle Floats Move Sea 0.4 0.022 0;
    Ship "ship" Vehicle Floats Move Sea 0.6 0.02 0x34_526e;
    SailingShip "sailing ship" Vehicle Floats Move Sea 0.6 0.02 0x7a_4a2c;
    Canoe "canoe" Vehicle Floats Move Lake 0.36 0.018 0x9a_6a3c;
    Submarine "submarine" Vehicle Swims Swim Underwater 0.5 0.025 0xe0_b030;
    Plane "plane" Vehicle Flies Fly Any 0.34 0.09 0xf2_f2ee;
    Helicopter "helicopter" Vehicle Flies Fly City 0.36 0.05 0;
    Drone "drone" Vehicle Flies Fly City 0.22 0.03 0x3c_4450;
    Balloon "hot-air balloon" Vehicle Flies Fly Hills 0.46 0.03 0;
    ToyBalloon "balloon" Vehicle Flies Fly Hills 0.34 0.03 0;
    Airship "airship" Vehicle Flies Fly Hills 0.5 0.02 0;
    Kite "kite" Vehicle Flies Fly Hills 0.26 0.0 0;
    Rocket "rocket" Vehicle Flies Rise Space 0.42 0.035 0xf0_ece4;
    Saucer "spaceship" Vehicle Flies Fly Space 0.42 0.035 0x9a_a6b4;

    House "house" Building Stands Stand Hills 0.32 0.0 0xe6_d0a6;
    Castle "castle" Building Stands Stand Hills 0.6 0.0 0x9a_948c;
    Church "church" Building Stands Stand Hills 0.5 0.0 0xe0_d8c8;
    Temple "temple" Building Stands Stand Mountains 0.5 0.0 0xb0_4030;
    Tower "tower" Building Stands Stand City 0.6 0.0 0x8a_8078;
    Skyscraper "skyscraper" Building Stands Stand City 0.7 0.0 0x6a_8098;
    Windmill "windmill" Building Stands Turn Hills 0.5 0.0 0xe8_e0d0;
    Lighthouse "lighthouse" Building Stands Turn Sea 0.5 0.0 0xc8_3f38;
    Bridge "bridge" Building Stands Stand Lake 0.8 0.0 0xa0_5a48;
    Barn "barn" Building Stands Stand Hills 0.4 0.0 0xb0_3a30;
    Tent "tent" Building Stands Stand Hills 0.28 0.0 0xe0_8a34;
    Igloo "igloo" Building Stands Stand Mountains 0.3 0.0 0xe8_f2fa;
    Pyramid "pyramid" Building Stands Stand Desert 0.7 0.0 0xd8_b070;
    Factory "factory" Building Stands Stand City 0.5 0.0 0x8a_6050;
    FerrisWheel "Ferris wheel" Building Stands Turn City 0.6 0.0 0;
    Fountain "fountain" Building Stands Stand City 0.36 0.0 0xb8_b4ac;
    Statue "statue" Building Stands Stand City 0.42 0.0 0x7a_9a8a;
    Bench "bench" Building Stands Stand Hills 0.26 0.0 0x8a_5a3a;
    LampPost "lamp post" Building Stands Stand City 0.4 0.0 0x2c_3038;
    Volcano "volcano" Building Stands Burn Mountains 0.8 0.0 0x5a_4a48;
    Waterfall "waterfall" Building Stands Move Mountains 0.6 0.0 0xd8_ecf4;
    Iceberg "iceberg" Building Floats Stand Sea 0.5 0.004 0xe0_f0f8;
    Tree "tree" Plant Stands Stand Hills 0.52 0.0 0;
    Pine "pine" Plant Stands Stand Mountains 0.5 0.0 0x2b_5a44;
    Palm "palm tree" Plant Stands Stand Sea 0.55 0.0 0x4a_8a48;
    CherryTree "cherry tree" Plant Stands Stand Hills 0.5 0.0 0xf0_a8c0;
    BareTree "bare tree" Plant Stands Stand Hills 0.5 0.0 0x4a_3a30;
    Bush "bush" Plant Stands Stand Hills 0.24 0.0 0x4d_8052;
    Cactus "cactus" Plant Stands Stand Desert 0.36 0.0 0x4f_8a4a;
    Flower "flower" Plant Stands Stand Hills 0.5 0.0 0;
    Sunflower "sunflower" Plant Stands Stand Hills 0.5 0.0 0xf4_c020;
    Rose "rose" Plant Stands Stand Hills 0.4 0.0 0xc8_2838;
    Tulip "tulip" Plant Stands Stand Hills 0.4 0.0 0xe0_4a5a;
    Mushroom "mushroom" Plant Stands Stand Forest 0.24 0.0 0xc8_3a30;
    Pumpkin "pumpkin" Plant Lies Stand Hills 0.24 0.0 0xe8_8024;
    Cup "cup" Thing Lies Stand Table 0.36 0.0 0xf0_ece4;
    Teapot "teapot" Thing Lies Stand Table 0.4 0.0 0x5a_8aa8;
    Bread "bread" Thing Lies Stand Table 0.42 0.0 0xc8_8a4c;
    Cake "cake" Thing Lies Stand Table 0.42 0.0 0xf0_c0c8;
    Pizza "pizza" Thing Lies Stand Table 0.46 0.0 0xe8_b450;
    Burger "burger" Thing Lies Stand Table 0.38 0.0 0xc8_8840;
    Soup "soup" Thing Lies Stand Table 0.42 0.0 0xd8_8a3c;
    Apple "apple" Thing Lies Stand Table 0.24 0.0 0xc8_3030;
    Banana "banana" Thing Lies Stand Table 0.3 0.0 0xf2_d040;
    Lemon "lemon" Thing Lies Stand Table 0.22 0.0 0xf2_d83c;
    Strawberry "strawberry" Thing Lies Stand Table 0.2 0.0 0xd8_2c38;
    Egg "egg" Thing Lies Stand Table 0.2 0.0 0xf4_e8d8;
    IceCream "ice cream" Thing Lies Stand Table 0.34 0.0 0xf4_c8d0;
    Bottle "bottle" Thing Lies Stand Table 0.44 0.0 0x3a_6a4a;
    Glass "glass" Thing Lies Stand Table 0.36 0.0 0x8a_2438;
    Candle "candle" Thing Lies Burn Table 0.36 0.0 0xf0_e4cc;
    Vase "vase" Thing Lies Stand Table 0.44 0.0 0x4a_78a8;
    Book "book" Thing Lies Stand Table 0.36 0.0 0x8a_3a34;
    Clock "clock" Thing Lies Stand Table 0.36 0.0 0xe8_e0d0;
    Hourglass "hourglass" Thing Lies Stand Table 0.36 0.0 0x9a_6a3c;
    Laptop "laptop" Thing Lies Stand Table 0.42 0.0 0x9a_a0a8;
    Phone "phone" Thing Lies Stand Table 0.24 0.0 0x2a_2e38;
    Camera "camera" Thing Lies Stand Table 0.3 0.0 0x34_343c;
    Key "key" Thing Lies Stand Table 0.22 0.0 0xc8_a040;
    Gift "gift" Thing Lies Stand Table 0.32 0.0 0xc8_3040;
    Lamp "lamp" Thing Lies Stand Table 0.42 0.0 0xe8_c890;
    Lantern "lantern" Thing Lies Burn Table 0.34 0.0 0xd8_5030;
    Guitar "guitar" Thing Lies Stand Room 0.4 0.0 0xb0_6a34;
    Piano "piano" Thing Stands Stand Room 0.5 0.0 0x28_2830;
    Chair "chair" Thing Stands Stand Room 0.36 0.0 0x8a_5a3a;
    Table "table" Thing Stands Stand Room 0.44 0.0 0x9a_6a44;
    Door "door" Thing Stands Stand Room 0.5 0.0 0x7a_4a34;
    Chest "treasure chest" Thing Lies Stand Sea 0.34 0.0 0x8a_5a30;
    Ball "ball" Thing Lies Stand Hills 0.2 0.02 0;
    Bell "bell" Thing Lies Stand Room 0.28 0.0 0xd0_a040;
    Sword "sword" Thing Lies Stand Table 0.4 0.0 0xc0_c8d4;
    Crown "crown" Thing Lies Stand Table 0.28 0.0 0xe8_b838;
    Heart "heart" Thing Flies Fly Any 0.3 0.01 0xd8_3048;
    Campfire "campfire" Thing Stands Burn Forest 0.3 0.0 0xf0_8a2c;
    Crystal "crystal" Thing Stands Stand Mountains 0.34 0.0 0x8a_c8e8;
    Orange "orange" Thing Lies Stand Table 0.24 0.0 0xf0_8c28;
    Grapes "grapes" Thing Lies Stand Table 0.28 0.0 0x7a_4a9a;
    Watermelon "watermelon" Thing Lies Stand Table 0.4 0.0 0xe0_4a50;
    Carrot "carrot" Thing Lies Stand Table 0.3 0.0 0xe8_7e28;
    Doughnut "doughnut" Thing Lies Stand Table 0.3 0.0 0xe8_78a8;
    Cheese "cheese" Thing Lies Stand Table 0.34 0.0 0xf2_c440;
    TeddyBear "teddy bear" Thing Lies Stand Room 0.34 0.0 0xb0_7c48;
    Violin "violin" Thing Lies Stand Room 0.38 0.0 0xa8_562c;
    Drum "drum" Thing Lies Stand Room 0.34 0.0 0xc8_383c;
    Bed "bed" Thing Stands Stand Room 0.6 0.0 0x5a_80a8;
    Sofa "sofa" Thing Stands Stand Room 0.5 0.0 0x4f_8a84;
    Television "television" Thing Stands Stand Room 0.36 0.0 0xa8_683c;
    Letter "letter" Thing Lies Stand Table 0.32 0.0 0xf0_e4cc;
    Globe "globe" Thing Lies Stand Table 0.4 0.0 0x4a_8ac0;
    Telescope "telescope" Thing Stands Stand Hills 0.4 0.0 0x3c_5a80;
    Suitcase "suitcase" Thing Lies Stand City 0.32 0.0 0x8a_5c3c;
}

impl Subject {
    /// Whether it is the sun or the moon, which the sky draws; neither has a place among the figures.
    pub(crate) fn is_orb(self) -> bool {
        matches!(self, Self::Sun | Self::Moon)
    }
}
