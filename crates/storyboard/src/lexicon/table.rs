//! The word table: English first, then Spanish, French, German, Chinese and Japanese where a
//! common word exists. Words are lower case; a group shares its meanings.

use super::super::colour::Rgb;
use super::Framing as F;
use super::Hour as H;
use super::Meaning::{
    self, Colour, Framing, Ground, Heaven, Hour, Mood, Motion, Neon, Not, Place, Subject, Then,
    Weather,
};
use super::Mood as E;
use super::Motion as M;
use super::Place as P;
use super::Subject as S;
use super::Weather as W;

const fn ink(code: u32) -> Meaning {
    Colour(Rgb::hex(code))
}

/// Words, separated by `|`, and what they mean.
pub(super) const GROUPS: &[(&str, &[Meaning])] = &[
    // Hours
    (
        "dawn|sunrise|sun rises|rising sun|sun comes up|daybreak|first light|amanecer|aube|sonnenaufgang|morgengrauen|黎明|清晨|日出|夜明け|朝焼け",
        &[Hour(H::Dawn), Subject(S::Sun)],
    ),
    (
        "morning|early morning|mañana|matin|morgen|早晨|早上|朝",
        &[Hour(H::Dawn)],
    ),
    (
        "day|daytime|noon|midday|daylight|sunny|afternoon|mediodía|soleado|midi|ensoleillé|mittag|sonnig|tag|白天|中午|正午|晴天|昼",
        &[Hour(H::Day)],
    ),
    (
        "golden hour|sunset|sun sets|setting sun|sun goes down|evening|late afternoon|atardecer|puesta de sol|coucher de soleil|soir|sonnenuntergang|abend|黄昏|日落|夕阳|傍晚|夕焼け|夕日",
        &[Hour(H::Golden), Subject(S::Sun)],
    ),
    (
        "dusk|twilight|blue hour|crepúsculo|crépuscule|dämmerung|暮色|薄暮|夕暮れ",
        &[Hour(H::Dusk)],
    ),
    (
        "night|midnight|nighttime|noche|medianoche|nuit|minuit|nacht|mitternacht|夜晚|夜空|夜里|午夜|深夜|夜",
        &[Hour(H::Night)],
    ),
    (
        "starry|stars|star|starlight|milky way|estrellas|étoiles|sterne|星空|星星|星",
        &[Hour(H::Night), Heaven],
    ),
    (
        "moonlit|moonlight|moon|full moon|luna|lune|mond|月亮|月光|明月|月",
        &[Hour(H::Night), Subject(S::Moon)],
    ),
    (
        "sun|sunshine|sunlight|sol|soleil|sonne|太阳|阳光|太陽",
        &[Subject(S::Sun)],
    ),
    // Weather
    (
        "clear|cloudless|despejado|dégagé|klar|晴朗|晴",
        &[Weather(W::Clear)],
    ),
    (
        "cloud|cloudy|overcast|nubes|nublado|nuage|nuageux|wolken|bewölkt|云|多云|白云|雲|曇り",
        &[Weather(W::Clouds), Heaven],
    ),
    (
        "rain|rainy|raining|drizzle|wet|lluvia|pluie|regen|下雨|雨",
        &[Weather(W::Rain)],
    ),
    (
        "snowy|snow-capped|winter|frozen|icy|nevado|invierno|hiver|冬",
        &[Weather(W::Snow)],
    ),
    (
        "snow|snowing|snowfall|snowflake|blizzard|nieve|neige|schnee|下雪|大雪|雪",
        &[Weather(W::Snow), Weather(W::Snowfall)],
    ),
    (
        "storm|stormy|thunder|lightning|thunderstorm|tormenta|orage|tempête|gewitter|sturm|暴风雨|雷|嵐",
        &[Weather(W::Storm)],
    ),
    (
        "fog|foggy|mist|misty|haze|hazy|niebla|brouillard|brume|nebel|雾|薄雾|霧",
        &[Weather(W::Fog)],
    ),
    (
        "wind|windy|breeze|gust|viento|vent|风|微风|風",
        &[Weather(W::Wind)],
    ),
    // Places
    (
        "sea|ocean|seaside|beach|coast|coastal|shore|wave|harbor|harbour|bay|island|mar|océano|playa|costa|mer|océan|plage|meer|strand|küste|ozean|大海|海边|海滩|海洋|海岸|海",
        &[Place(P::Sea)],
    ),
    (
        "mountain|peak|alps|alpine|summit|glacier|himalaya|montaña|montagne|berg|gebirge|berge|山脉|高山|山",
        &[Place(P::Mountains)],
    ),
    ("雪山", &[Place(P::Mountains), Weather(W::Snow)]),
    (
        "forest|wood|woods|jungle|rainforest|pines|grove|bosque|selva|forêt|wald|森林|树林|竹林|林|森",
        &[Place(P::Forest), Ground],
    ),
    (
        "desert|dune|sahara|sand|desierto|dunas|désert|dunes|wüste|沙漠|沙丘|砂漠",
        &[Place(P::Desert)],
    ),
    (
        "city|street|downtown|skyline|skyscraper|urban|metropolis|tokyo|new york|alley|rooftop|ciudad|calle|ville|rue|stadt|straße|城市|街道|街|都市|东京|上海",
        &[Place(P::City)],
    ),
    (
        "neon|cyberpunk|neón|néon|霓虹|ネオン",
        &[Neon, Place(P::City), Hour(H::Night)],
    ),
    (
        "hill|meadow|field|village|farm|countryside|grass|grassland|prairie|valley|garden|park|road|highway|vineyard|campo|prado|pueblo|colina|jardín|champ|colline|jardin|feld|wiese|dorf|hügel|garten|草地|田野|村庄|山坡|花园|草原|乡村|丘|公園",
        &[Place(P::Hills), Ground],
    ),
    (
        "lake|river|pond|fjord|lagoon|stream|lago|río|lac|rivière|see|fluss|湖|河|江|川",
        &[Place(P::Lake)],
    ),
    (
        "space|galaxy|cosmos|universe|nebula|orbit|outer space|espacio|galaxia|espace|galaxie|weltraum|weltall|太空|宇宙|银河|星系",
        &[Place(P::Space), Hour(H::Night)],
    ),
    (
        "underwater|undersea|coral|reef|deep sea|seabed|submarino|bajo el agua|sous-marin|sous l'eau|unterwasser|水下|海底|水中",
        &[Place(P::Underwater)],
    ),
    (
        "room|window|windowsill|interior|kitchen|bedroom|indoors|cafe|café|library|office|habitación|ventana|chambre|fenêtre|zimmer|fenster|küche|房间|窗台|窗户|窗|室内|部屋",
        &[Place(P::Room)],
    ),
    (
        "sky|heaven|above the clouds|cielo|ciel|himmel|天空|空",
        &[Heaven],
    ),
    ("sea of clouds|云海|雲海", &[Place(P::Sky)]),
    (
        "abstract|geometric|feeling|idea|dream|memory|music|abstracto|abstrait|abstrakt|抽象|梦",
        &[Place(P::Abstract)],
    ),
    // Subjects
    (
        "hot air balloon|hot-air balloon|montgolfière|globo aerostático|heißluftballon|热气球|気球",
        &[Subject(S::Balloon)],
    ),
    (
        "balloon|globo|ballon|luftballon|气球|風船",
        &[Subject(S::ToyBalloon)],
    ),
    (
        "boat|sailboat|ship|yacht|sail|fishing boat|canoe|barco|velero|bateau|voilier|boot|schiff|segelboot|帆船|小船|船",
        &[Subject(S::Boat)],
    ),
    (
        "bird|seagull|gull|crow|swallow|geese|eagle|dove|flock|pájaro|aves|gaviota|oiseau|mouette|vogel|vögel|möwe|鸟|海鸥|飞鸟|鳥",
        &[Subject(S::Birds)],
    ),
    (
        "tree|oak|cherry tree|árbol|arbre|baum|树|大树|木|桜",
        &[Subject(S::Tree), Ground],
    ),
    (
        "house|cottage|cabin|hut|barn|casa|cabaña|maison|cabane|haus|hütte|房子|小屋|家",
        &[Subject(S::House)],
    ),
    (
        "car|taxi|cab|automobile|coche|carro|voiture|auto|wagen|汽车|出租车|车|車",
        &[Subject(S::Car)],
    ),
    (
        "train|locomotive|railway|tren|zug|火车|列车|電車",
        &[Subject(S::Train)],
    ),
    (
        "cat|kitten|gato|gatito|chat|katze|猫|小猫",
        &[Subject(S::Cat)],
    ),
    ("dog|puppy|perro|chien|hund|狗|小狗|犬", &[Subject(S::Dog)]),
    (
        "horse|stallion|caballo|cheval|pferd|马|馬",
        &[Subject(S::Horse)],
    ),
    (
        "camel|caravan|camello|chameau|kamel|骆驼|ラクダ",
        &[Subject(S::Camel)],
    ),
    (
        "person|man|woman|girl|boy|child|traveler|traveller|hiker|figure|people|human|astronaut|monk|hombre|mujer|niña|niño|persona|gente|homme|femme|fille|garçon|enfant|mann|frau|mädchen|junge|kind|mensch|人|女孩|男孩|女人|男人|孩子|少女|少年",
        &[Subject(S::Person)],
    ),
    (
        "fish|school of fish|pez|peces|poisson|fisch|鱼|魚",
        &[Subject(S::Fish)],
    ),
    (
        "whale|ballena|baleine|wal|鲸鱼|鲸|クジラ",
        &[Subject(S::Whale)],
    ),
    (
        "rocket|missile|cohete|fusée|rakete|火箭|ロケット",
        &[Subject(S::Rocket)],
    ),
    (
        "spaceship|spacecraft|starship|ufo|saucer|nave espacial|vaisseau|raumschiff|飞船|宇宙飞船|宇宙船",
        &[Subject(S::Saucer)],
    ),
    (
        "planet|saturn|jupiter|planeta|planète|行星|惑星",
        &[Subject(S::Planet)],
    ),
    (
        "lighthouse|faro|phare|leuchtturm|灯塔|灯台",
        &[Subject(S::Lighthouse)],
    ),
    (
        "flower|rose|tulip|poppy|blossom|sunflower|flor|fleur|blume|花|花朵|向日葵",
        &[Subject(S::Flower)],
    ),
    (
        "kite|cometa|cerf-volant|drachen|风筝|凧",
        &[Subject(S::Kite)],
    ),
    (
        "butterfly|butterflies|mariposa|papillon|schmetterling|蝴蝶|蝶",
        &[Subject(S::Butterfly)],
    ),
    (
        "plane|airplane|aeroplane|aircraft|jet|avión|avion|flugzeug|飞机|飛行機",
        &[Subject(S::Plane)],
    ),
    (
        "umbrella|paraguas|parapluie|regenschirm|雨伞|伞|傘",
        &[Subject(S::Umbrella)],
    ),
    // Colours
    (
        "red|crimson|scarlet|ruby|rojo|roja|rouge|rot|rote|roter|rotes|红色|红|赤|赤い",
        &[ink(0xd3_2f2f)],
    ),
    (
        "orange|naranja|tangerine|amber|橙色|橙|オレンジ",
        &[ink(0xf0_8228)],
    ),
    (
        "yellow|lemon|amarillo|amarilla|jaune|gelb|gelbe|gelber|黄色|黄|黄色い",
        &[ink(0xf2_c832)],
    ),
    ("gold|golden|dorado|doré|金色|金", &[ink(0xe0_a83a)]),
    (
        "green|emerald|lush|verde|vert|verte|grün|grüne|grüner|绿色|绿|緑",
        &[ink(0x3f_9c52)],
    ),
    (
        "teal|turquoise|cyan|aqua|turquesa|türkis|青色|青绿",
        &[ink(0x1f_a3a3)],
    ),
    (
        "blue|azure|cobalt|azul|bleu|bleue|blau|blaue|blauer|蓝色|蓝|青|青い",
        &[ink(0x2f_66c8)],
    ),
    ("indigo|navy|靛蓝|藍", &[ink(0x2b_3a8c)]),
    (
        "purple|violet|lavender|morado|violeta|violette|lila|紫色|紫",
        &[ink(0x80_48b8)],
    ),
    (
        "pink|magenta|rosa|fuchsia|粉色|粉红|粉|ピンク",
        &[ink(0xe8_6fa4)],
    ),
    (
        "white|ivory|blanco|blanca|blanc|blanche|weiß|weiße|白色|白|白い",
        &[ink(0xf2_f0ea)],
    ),
    (
        "black|negro|negra|noir|noire|schwarz|schwarze|黑色|黑|黒",
        &[ink(0x22_2228)],
    ),
    (
        "grey|gray|silver|gris|grau|graue|plateado|灰色|银色|灰",
        &[ink(0x8a_9098)],
    ),
    (
        "brown|bronze|copper|marrón|brun|braun|棕色|褐色|茶色",
        &[ink(0x8a_5a3a)],
    ),
    // Motion
    (
        "rise|rising|rises|lift|lifts|soar|soaring|ascend|climb|launch|takes off|sube|elevarse|monte|s'élève|steigt|升起|上升|起飞",
        &[Motion(M::Rise)],
    ),
    (
        "fall|falls|falling|descend|sink|sinking|landing|cae|tombe|fällt|落下|下降",
        &[Motion(M::Fall)],
    ),
    (
        "fly|flies|flying|run|runs|running|drive|drives|driving|sails|sailing|walk|walks|walking|cross|crosses|crossing|drift|drifts|drifting|float|floats|floating|swim|swims|swimming|gallop|galloping|pass|passes|glide|gliding|vuela|corre|navega|camina|flotando|vole|court|marche|flotte|fliegt|läuft|fährt|schwebt|飞|飞过|跑|奔跑|走|漂浮|游|驶过",
        &[Motion(M::Travel)],
    ),
    (
        "fast|quick|quickly|racing|speeding|speed|rush|rushing|rápido|rapide|schnell|快速|飞速|快",
        &[Motion(M::Fast)],
    ),
    (
        "slow|slowly|gently|gentle|slow motion|lento|lentamente|lentement|langsam|慢慢|缓缓|缓慢|慢",
        &[Motion(M::Slow)],
    ),
    (
        "still|static|locked off|motionless|静止",
        &[Motion(M::Still)],
    ),
    // Camera
    (
        "close-up|close up|closeup|macro|portrait of|primer plano|gros plan|nahaufnahme|特写|近景",
        &[Framing(F::Close)],
    ),
    (
        "wide|wide shot|establishing|panorama|panoramic|vista|plano general|plan large|totale|全景|远景|广角",
        &[Framing(F::Wide)],
    ),
    (
        "aerial|drone|bird's eye|from above|overhead|aéreo|aérien|luftaufnahme|航拍|鸟瞰",
        &[Framing(F::Aerial)],
    ),
    (
        "zoom in|push in|dolly in|zoom|moves closer|acercamiento|推进|拉近",
        &[Framing(F::PushIn)],
    ),
    (
        "zoom out|pull out|pull back|dolly out|reveal|拉远",
        &[Framing(F::PullOut)],
    ),
    ("pan left|左摇", &[Framing(F::PanLeft)]),
    (
        "pan|pan right|panning|tracking|tracking shot|travelling|dolly|平移|跟拍",
        &[Framing(F::PanRight)],
    ),
    ("tilt up|crane up|pan up", &[Framing(F::TiltUp)]),
    ("tilt down|crane down|pan down", &[Framing(F::TiltDown)]),
    (
        "orbiting|orbits|circling|circles around|rotating around|环绕",
        &[Framing(F::Orbit)],
    ),
    (
        "timelapse|time-lapse|time lapse|hyperlapse|延时",
        &[Framing(F::Timelapse)],
    ),
    // Mood
    (
        "calm|peaceful|serene|quiet|tranquil|silent|tranquilo|calme|ruhig|宁静|平静|安静",
        &[Mood(E::Calm)],
    ),
    (
        "happy|joyful|cheerful|playful|bright|festive|celebration|alegre|joyeux|fröhlich|快乐|欢乐|开心",
        &[Mood(E::Joyful)],
    ),
    (
        "sad|melancholy|melancholic|lonely|lonesome|somber|nostalgic|monday|triste|traurig|悲伤|孤独|忧伤",
        &[Mood(E::Sad)],
    ),
    (
        "tense|dark|dramatic|ominous|epic|scary|horror|thriller|menacing|war|battle|tenso|dramático|dramatique|düster|紧张|恐怖|史诗",
        &[Mood(E::Tense)],
    ),
    (
        "dreamy|dreamlike|magical|ethereal|fantasy|surreal|mystical|enchanted|mágico|magique|magisch|traumhaft|梦幻|魔法|神秘",
        &[Mood(E::Dreamy)],
    ),
    // Grammar
    ("no|without|never|sin|sans|ohne|没有|无", &[Not]),
    (
        "then|cut to|next shot|afterwards|luego|después|puis|ensuite|dann|danach|然后|接着|切到",
        &[Then],
    ),
];
